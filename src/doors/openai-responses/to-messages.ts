import { HermesError } from '../../contracts/errors.ts';
import type { ChatMessage, ContentPart } from '../../wire/chat.ts';
import { isRecord } from '../../wire/json.ts';
import { fromEncryptedContent } from './signed-reasoning.ts';

type Item = Record<string, unknown>;

/** `instructions` and `input` in all of their forms as canonical messages. Throws a HermesError that names the place. */
export function toMessages(instructions: unknown, input: unknown): ChatMessage[] {
  const messages: ChatMessage[] = typeof instructions === 'string' && instructions !== '' ? [{ role: 'system', content: instructions }] : [];
  if (typeof input === 'string') return [...messages, { role: 'user', content: input }];
  if (!Array.isArray(input) || input.length === 0) throw refuse('input', "'input' must be a text or a list of at least one item.");
  const turn = new AssistantTurn(messages);
  for (const [index, item] of input.entries()) addItem(turn, messages, item, `input[${index}]`);
  turn.flush();
  return messages;
}

function addItem(turn: AssistantTurn, messages: ChatMessage[], item: unknown, path: string): void {
  if (!isRecord(item)) throw refuse(path, `'${path}' must be an object.`);
  const type = item.type ?? 'message';
  switch (type) {
    case 'message':
      if (item.role === 'assistant') turn.say(toContent(item.content, `${path}.content`));
      else {
        turn.flush();
        messages.push(toMessage(item, path));
      }
      break;
    case 'reasoning':
      turn.think(item);
      break;
    case 'function_call':
      turn.call(item, path);
      break;
    case 'function_call_output':
      turn.flush();
      messages.push(toResult(item, path));
      break;
    default:
      throw refuse(
        path,
        `Input items of the type ${JSON.stringify(type)} cannot be carried over; leave them out, or pass this API through (passthrough.responses).`,
      );
  }
}

/** Reasoning, text and calls that follow each other are one assistant message. */
class AssistantTurn {
  readonly #messages: ChatMessage[];
  #message: ChatMessage | undefined;

  constructor(messages: ChatMessage[]) {
    this.#messages = messages;
  }

  get #open(): ChatMessage {
    this.#message ??= { role: 'assistant', content: null };
    return this.#message;
  }

  say(content: string | ContentPart[]): void {
    // A second text is a second message: joining would invent a line.
    if (this.#message && (this.#message.content !== null || this.#message.tool_calls)) this.flush();
    this.#open.content = content;
  }

  think(item: Item): void {
    // Thinking may stand between a text and the calls; behind calls it begins another message.
    if (this.#message?.tool_calls) this.flush();
    const text = [item.summary, item.content].map(textOf).find((one) => one !== '');
    const signed = fromEncryptedContent(item.encrypted_content);
    if (text) this.#open.reasoning_content = `${this.#open.reasoning_content ?? ''}${text}`;
    if (signed.length > 0) this.#open.thinking_blocks = [...(Array.isArray(this.#open.thinking_blocks) ? this.#open.thinking_blocks : []), ...signed];
  }

  call(item: Item, path: string): void {
    const { call_id, name } = item;
    if (typeof call_id !== 'string' || typeof name !== 'string') throw refuse(path, `'${path}' must have a call_id and a name.`);
    const message = this.#open;
    message.tool_calls = [
      ...(message.tool_calls ?? []),
      { id: call_id, type: 'function', function: { name, arguments: typeof item.arguments === 'string' ? item.arguments : '' } },
    ];
  }

  flush(): void {
    const message = this.#message;
    this.#message = undefined;
    // Reasoning alone, without what it led to, is nothing that a model takes.
    if (message && (message.content !== null || message.tool_calls)) this.#messages.push(message);
  }
}

function textOf(parts: unknown): string {
  if (!Array.isArray(parts)) return '';
  return parts.map((part) => (isRecord(part) && typeof part.text === 'string' ? part.text : '')).join('\n');
}

const ROLES = ['user', 'system', 'developer'] as const;

function toMessage(item: Item, path: string): ChatMessage {
  const role = ROLES.find((one) => one === item.role);
  if (!role) throw refuse(`${path}.role`, `'${path}.role' must be one of user, assistant, system, developer.`);
  return { role, content: toContent(item.content, `${path}.content`) };
}

function toResult({ call_id, output }: Item, path: string): ChatMessage {
  if (typeof call_id !== 'string') throw refuse(`${path}.call_id`, `'${path}.call_id' must name the call that it answers.`);
  return { role: 'tool', tool_call_id: call_id, content: typeof output === 'string' ? output : toContent(output, `${path}.output`) };
}

function toContent(content: unknown, path: string): string | ContentPart[] {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) throw refuse(path, `'${path}' must be a text or a list of parts.`);
  const parts = content.map((part, index) => toPart(part, `${path}[${index}]`));
  const [only] = parts;
  return parts.length === 1 && only?.type === 'text' ? (only.text ?? '') : parts;
}

function toPart(part: unknown, path: string): ContentPart {
  if (!isRecord(part)) throw refuse(path, `'${path}' must be an object with a type.`);
  switch (part.type) {
    case 'input_text':
    case 'output_text':
    case 'text':
      return { type: 'text', text: typeof part.text === 'string' ? part.text : '' };
    case 'refusal':
      return { type: 'text', text: typeof part.refusal === 'string' ? part.refusal : '' };
    case 'input_image':
      if (typeof part.image_url !== 'string') throw refuse(path, `'${path}' must bring its image as image_url.`);
      return { type: 'image_url', image_url: { url: part.image_url, ...(typeof part.detail === 'string' ? { detail: part.detail } : {}) } };
    case 'input_file': {
      const { type: _type, ...file } = part;
      return { type: 'file', file };
    }
    case 'input_audio':
      return { type: 'input_audio', input_audio: part.input_audio };
    default:
      throw refuse(path, `Parts of the type ${JSON.stringify(part.type)} cannot be carried over.`);
  }
}

export function refuse(param: string, message: string): HermesError {
  return new HermesError('invalid_request', message, { param });
}

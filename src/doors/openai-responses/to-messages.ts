import type { ChatMessage, ContentPart } from '../../wire/chat.ts';
import { isRecord } from '../../wire/json.ts';
import { AssistantTurn } from './assistant-turn.ts';
import { toArguments } from './custom-tools.ts';
import { referenceOf } from './references.ts';
import { refuse } from './refuse.ts';

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

/** References to items of earlier answers in the place of what they lead to, and made one message with what stands beside them. */
export function resolveReferences(messages: readonly ChatMessage[], items: ReadonlyMap<string, unknown>): ChatMessage[] {
  const resolved: ChatMessage[] = [];
  const turn = new AssistantTurn(resolved);
  let joins = false;
  for (const [index, message] of messages.entries()) {
    const id = referenceOf(message);
    const next = messages[index + 1];
    if (id !== undefined) addItem(turn, resolved, items.get(id), `item ${id}`);
    else if (message.role === 'assistant' && (joins || (next && referenceOf(next) !== undefined))) turn.join(message);
    else {
      turn.flush();
      resolved.push(message);
    }
    joins = message.role === 'assistant' && (id !== undefined || joins);
  }
  turn.flush();
  return resolved;
}

/** The type may be left out of a message and of a reference. */
function typeOf(item: Item): unknown {
  return item.type ?? (item.role === undefined && typeof item.id === 'string' ? 'item_reference' : 'message');
}

function addItem(turn: AssistantTurn, messages: ChatMessage[], item: unknown, path: string): void {
  if (!isRecord(item)) throw refuse(path, `'${path}' must be an object.`);
  const type = typeOf(item);
  switch (type) {
    case 'item_reference':
      if (typeof item.id !== 'string') throw refuse(`${path}.id`, `'${path}.id' must be the id of an item.`);
      turn.refer(item.id);
      break;
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
    case 'custom_tool_call':
      turn.call({ ...item, arguments: toArguments(item.input) }, path);
      break;
    case 'custom_tool_call_output':
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

import type { ChatMessage, ContentPart } from '../../wire/chat.ts';
import { isRecord } from '../../wire/json.ts';
import { toReference } from './references.ts';
import { refuse } from './refuse.ts';
import { fromEncryptedContent } from './signed-reasoning.ts';

type Item = Record<string, unknown>;

/** Reasoning, text and calls that follow each other are one assistant message. */
export class AssistantTurn {
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

  /** Stands between what came before it and what follows until it is known what it is: then they may be one message. */
  refer(id: string): void {
    if (this.#message) this.#messages.push(this.#message);
    this.#message = undefined;
    this.#messages.push(toReference(id));
  }

  /** A part of the message that was written apart from the rest of it, because a reference stood between. */
  join(part: ChatMessage): void {
    const open = this.#message;
    const { content, ...rest } = part;
    const says = content !== null && content !== undefined;
    const thinks = part.reasoning_content || part.thinking_blocks;
    if (open && ((says && (open.content !== null || open.tool_calls)) || (thinks && open.tool_calls))) this.flush();
    const { tool_calls } = this.#open;
    Object.assign(this.#open, rest, says ? { content } : {});
    if (tool_calls) this.#open.tool_calls = [...tool_calls, ...(part.tool_calls ?? [])];
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

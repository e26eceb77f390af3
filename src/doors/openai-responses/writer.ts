import type { Asked } from '../../contracts/door.ts';
import type { HermesError } from '../../contracts/errors.ts';
import type { Facts } from '../../contracts/exchange.ts';
import type { Outcome, Writer } from '../../contracts/stream.ts';
import type { ChatChunk, Delta, ToolCallDelta, Usage } from '../../wire/chat.ts';
import { stringifyJson } from '../../wire/json.ts';
import { signedThinkingOf } from '../../wire/signed-thinking.ts';
import { customNames } from './custom-tools.ts';
import { toLogprobs } from './logprobs.ts';
import { type CallItem, createCallItem, type OutputItem, ReasoningItem, RefusalItem, TextItem } from './output-items.ts';
import { type ResponseHead, toEnding, toHead, toResponseUsage } from './to-response.ts';

/** Canonical chunks as the Responses API's named events, numbered in order. The final event waits for the end, since usage may come after the finish reason. */
export class ResponsesWriter implements Writer {
  readonly #head: ResponseHead;
  readonly #custom: ReadonlySet<string>;
  #events: string[] = [];
  #sequence = 0;
  #created: { created_at: number; model: string } | undefined;
  readonly #items: OutputItem[] = [];
  readonly #calls = new Map<number, CallItem>();
  #signed = false;
  #usage: Usage | undefined;
  #finish: string | undefined;
  #marks: Record<string, unknown> = {};

  constructor(asked: Asked | undefined, facts?: Facts) {
    this.#head = toHead(asked, facts);
    this.#custom = customNames(this.#head.tools);
  }

  write(chunk: ChatChunk): Uint8Array {
    const { degraded, original } = chunk;
    this.#marks = { ...(degraded === undefined ? {} : { degraded }), ...(original === undefined ? {} : { original }) };
    if (!this.#created) this.#begin(chunk);
    if (chunk.usage) this.#usage = chunk.usage;
    this.#sign(signedThinkingOf(chunk));
    for (const choice of chunk.choices ?? []) {
      if (choice.index !== 0) continue;
      if (choice.delta) this.#add(choice.delta, toLogprobs(choice.logprobs));
      if (choice.finish_reason) this.#finish = choice.finish_reason;
    }
    return this.#take();
  }

  end(outcome: Outcome, facts: Facts, hermes?: Readonly<Record<string, unknown>>): Uint8Array {
    if (outcome.error) return this.#fail(outcome.error);
    if (!this.#created) this.#begin({ id: '', object: 'chat.completion.chunk', created: 0, model: facts.model ?? '', choices: [] });
    const { status, incomplete_details } = toEnding(this.#finish ?? facts.finishReason);
    // An answer without a word is still a message.
    if (this.#items.length === 0 || (this.#calls.size === 0 && this.#items.every((item) => item instanceof ReasoningItem))) this.#openText(TextItem);
    for (const item of this.#items) this.#close(item, status);
    const response = this.#response(status, incomplete_details, toResponseUsage(this.#usage ?? facts.usage));
    this.#emit(`response.${status}`, { response: { ...response, ...(hermes ? { hermes } : {}) }, ...this.#marks });
    return this.#take();
  }

  /** Once the response has begun it fails; before, there is nothing but the error. */
  #fail({ message, wireCode, param }: HermesError): Uint8Array {
    if (this.#created) {
      const response = { ...this.#response('failed', null, null), error: { code: wireCode ?? 'server_error', message } };
      this.#emit('response.failed', { response });
    } else this.#emit('error', { code: wireCode, message, param });
    return this.#take();
  }

  #begin({ created, model }: ChatChunk): void {
    this.#created = { created_at: created, model };
    for (const type of ['response.created', 'response.in_progress']) this.#emit(type, { response: this.#response('in_progress', null, null), ...this.#marks });
  }

  #response(status: string, incomplete_details: unknown, usage: unknown): Record<string, unknown> {
    const created = this.#created ?? { created_at: 0, model: '' };
    const output = status === 'in_progress' ? [] : this.#items.map((item) => item.done(item.closedAs ?? status));
    return {
      ...this.#head,
      ...created,
      completed_at: status === 'completed' ? created.created_at : null,
      status,
      error: null,
      incomplete_details,
      output,
      usage,
    };
  }

  #add(delta: Delta, logprobs: readonly unknown[]): void {
    if (delta.reasoning_content) this.#write(this.#reasoning(), delta.reasoning_content);
    // The list at the end repeats what was signed on the way.
    if (Array.isArray(delta.thinking_blocks) && !this.#signed) this.#sign(delta.thinking_blocks);
    // A token that is half a character has a probability and no text yet.
    if (delta.content || (delta.content === '' && logprobs.length > 0)) this.#write(this.#last(TextItem) ?? this.#openText(TextItem), delta.content, logprobs);
    if (delta.refusal) this.#write(this.#last(RefusalItem) ?? this.#openText(RefusalItem), delta.refusal);
    for (const call of delta.tool_calls ?? []) this.#addCall(call);
  }

  #reasoning(): ReasoningItem {
    return this.#last(ReasoningItem) ?? this.#open(new ReasoningItem(this.#head.id, this.#items.length));
  }

  #sign(blocks: readonly unknown[]): void {
    if (blocks.length === 0) return;
    this.#signed = true;
    this.#reasoning().signed.push(...blocks);
  }

  #addCall({ index, id, function: called }: ToolCallDelta): void {
    let item = this.#calls.get(index);
    if (!item) {
      item = createCallItem(this.#head.id, this.#items.length, { call_id: id ?? `call_${index}`, name: called?.name ?? '' }, this.#custom);
      this.#calls.set(index, item);
      this.#open(item);
    }
    if (called?.arguments) this.#write(item, called.arguments);
  }

  #last<Item extends OutputItem>(kind: abstract new (...parts: never[]) => Item): Item | undefined {
    const item = this.#items.at(-1);
    return item instanceof kind && item.closedAs === undefined ? item : undefined;
  }

  #openText(kind: typeof TextItem | typeof RefusalItem): OutputItem {
    return this.#open(new kind(this.#head.id, this.#items.length));
  }

  /** What came before it is over, but for calls whose arguments are still being written. */
  #open<Item extends OutputItem>(item: Item): Item {
    for (const before of this.#items) if (before.complete) this.#close(before, 'completed');
    this.#items.push(item);
    for (const event of item.opening()) this.#emitItem(event);
    return item;
  }

  #write(item: OutputItem, text: string, logprobs: readonly unknown[] = []): void {
    for (const event of item.add(text, logprobs)) this.#emitItem(event);
  }

  #close(item: OutputItem, status: string): void {
    if (item.closedAs !== undefined) return;
    item.closedAs = status;
    for (const event of item.closing(status)) this.#emitItem(event);
  }

  #emitItem({ type, ...fields }: { type: string }): void {
    this.#emit(type, fields);
  }
  #emit(type: string, fields: Record<string, unknown>): void {
    this.#events.push(`event: ${type}\ndata: ${stringifyJson({ type, sequence_number: this.#sequence++, ...fields })}\n\n`);
  }
  #take(): Uint8Array {
    const text = this.#events.join('');
    this.#events = [];
    return Buffer.from(text);
  }
}

import { itemIds, toReasoningItem } from './to-response.ts';

export interface ItemEvent {
  type: string;
  [field: string]: unknown;
}

/** One item of a response's output while it is being written, and the events that tell of it. */
export abstract class OutputItem {
  readonly id: string;
  readonly index: number;
  text = '';
  /** The status that it was closed with: told once, told for good. */
  closedAs: string | undefined;

  constructor(id: string, index: number) {
    this.id = id;
    this.index = index;
  }

  /** Can nothing follow? Then it may be closed when another item begins. */
  get complete(): boolean {
    return true;
  }
  /** The item as it stands at last. */
  abstract done(status: string): Record<string, unknown>;
  abstract opening(): ItemEvent[];
  abstract add(text: string): ItemEvent[];
  abstract closing(status: string): ItemEvent[];

  protected event(type: string, fields: Record<string, unknown>): ItemEvent {
    return { type, item_id: this.id, output_index: this.index, ...fields };
  }
  protected added(item: Record<string, unknown>): ItemEvent {
    return { type: 'response.output_item.added', output_index: this.index, item };
  }
  protected finished(status: string): ItemEvent {
    return { type: 'response.output_item.done', output_index: this.index, item: this.done(status) };
  }
}

/** Reasoning is told as its summary, which is what clients show. */
export class ReasoningItem extends OutputItem {
  signed: unknown[] = [];

  constructor(response: string, index: number) {
    super(itemIds.reasoning(response, index), index);
  }
  done(): Record<string, unknown> {
    return toReasoningItem(this.id, this.text, this.signed);
  }
  opening(): ItemEvent[] {
    return [this.added({ id: this.id, type: 'reasoning', summary: [] })];
  }
  add(text: string): ItemEvent[] {
    const part = this.text === '' ? [this.#part('response.reasoning_summary_part.added')] : [];
    this.text += text;
    return [...part, this.event('response.reasoning_summary_text.delta', { summary_index: 0, delta: text })];
  }
  closing(status: string): ItemEvent[] {
    if (this.text === '') return [this.finished(status)];
    const done = this.event('response.reasoning_summary_text.done', { summary_index: 0, text: this.text });
    return [done, this.#part('response.reasoning_summary_part.done'), this.finished(status)];
  }
  #part(type: string): ItemEvent {
    return this.event(type, { summary_index: 0, part: { type: 'summary_text', text: this.text } });
  }
}

/** A message of one part. */
abstract class MessageItem extends OutputItem {
  constructor(response: string, index: number) {
    super(itemIds.message(response, index), index);
  }
  protected abstract part(): Record<string, unknown>;
  done(status: string): Record<string, unknown> {
    return this.#item(status === 'failed' ? 'incomplete' : status, [this.part()]);
  }
  opening(): ItemEvent[] {
    return [this.added(this.#item('in_progress', [])), this.event('response.content_part.added', { content_index: 0, part: this.part() })];
  }
  closing(status: string): ItemEvent[] {
    return [...this.said(), this.event('response.content_part.done', { content_index: 0, part: this.part() }), this.finished(status)];
  }
  protected abstract said(): ItemEvent[];
  #item(status: string, content: unknown[]): Record<string, unknown> {
    return { id: this.id, type: 'message', role: 'assistant', status, content };
  }
}

export class TextItem extends MessageItem {
  protected part(): Record<string, unknown> {
    return { type: 'output_text', text: this.text, annotations: [], logprobs: [] };
  }
  add(text: string): ItemEvent[] {
    this.text += text;
    return [this.event('response.output_text.delta', { content_index: 0, delta: text, logprobs: [] })];
  }
  protected said(): ItemEvent[] {
    return [this.event('response.output_text.done', { content_index: 0, text: this.text, logprobs: [] })];
  }
}

export class RefusalItem extends MessageItem {
  protected part(): Record<string, unknown> {
    return { type: 'refusal', refusal: this.text };
  }
  add(text: string): ItemEvent[] {
    this.text += text;
    return [this.event('response.refusal.delta', { content_index: 0, delta: text })];
  }
  protected said(): ItemEvent[] {
    return [this.event('response.refusal.done', { content_index: 0, refusal: this.text })];
  }
}

export class CallItem extends OutputItem {
  readonly #callId: string;
  readonly #name: string;

  constructor(response: string, index: number, callId: string, name: string) {
    super(itemIds.call(response, index), index);
    this.#callId = callId;
    this.#name = name;
  }
  /** Calls may interleave: one is over when its arguments are whole. */
  override get complete(): boolean {
    try {
      JSON.parse(this.text);
      return true;
    } catch {
      return false;
    }
  }
  done(status: string): Record<string, unknown> {
    return this.#item(status === 'failed' ? 'incomplete' : 'completed');
  }
  opening(): ItemEvent[] {
    return [this.added(this.#item('in_progress'))];
  }
  add(text: string): ItemEvent[] {
    this.text += text;
    return [this.event('response.function_call_arguments.delta', { delta: text })];
  }
  closing(status: string): ItemEvent[] {
    return [this.event('response.function_call_arguments.done', { name: this.#name, arguments: this.text }), this.finished(status)];
  }
  #item(status: string): Record<string, unknown> {
    return { id: this.id, type: 'function_call', status, call_id: this.#callId, name: this.#name, arguments: this.text };
  }
}

import { InputReader, toInput } from './custom-tools.ts';
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
  abstract add(text: string, logprobs: readonly unknown[]): ItemEvent[];
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
  readonly #logprobs: unknown[] = [];

  protected part(): Record<string, unknown> {
    return { type: 'output_text', text: this.text, annotations: [], logprobs: [...this.#logprobs] };
  }
  add(text: string, logprobs: readonly unknown[]): ItemEvent[] {
    this.text += text;
    this.#logprobs.push(...logprobs);
    return [this.event('response.output_text.delta', { content_index: 0, delta: text, logprobs })];
  }
  protected said(): ItemEvent[] {
    return [this.event('response.output_text.done', { content_index: 0, text: this.text, logprobs: this.#logprobs })];
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

/** A call of a tool, as the client is told of it. */
interface Called {
  call_id: string;
  name: string;
}

abstract class AnyCallItem extends OutputItem {
  protected readonly called: Called;

  constructor(id: string, index: number, called: Called) {
    super(id, index);
    this.called = called;
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
  protected abstract item(status: string): Record<string, unknown>;
  done(status: string): Record<string, unknown> {
    return this.item(status === 'failed' ? 'incomplete' : 'completed');
  }
  opening(): ItemEvent[] {
    return [this.added(this.item('in_progress'))];
  }
}

class FunctionCallItem extends AnyCallItem {
  constructor(response: string, index: number, called: Called) {
    super(itemIds.call(response, index), index, called);
  }
  add(text: string): ItemEvent[] {
    this.text += text;
    return [this.event('response.function_call_arguments.delta', { delta: text })];
  }
  closing(status: string): ItemEvent[] {
    return [this.event('response.function_call_arguments.done', { name: this.called.name, arguments: this.text }), this.finished(status)];
  }
  protected item(status: string): Record<string, unknown> {
    return { id: this.id, type: 'function_call', status, ...this.called, arguments: this.text };
  }
}

/** Its text is the arguments that the input comes in. */
class CustomCallItem extends AnyCallItem {
  readonly #reader = new InputReader();
  #told = '';

  constructor(response: string, index: number, called: Called) {
    super(itemIds.customCall(response, index), index, called);
  }
  add(text: string): ItemEvent[] {
    this.text += text;
    return this.#tell(this.#reader.read(text));
  }
  closing(status: string): ItemEvent[] {
    const input = toInput(this.text);
    const rest = input.startsWith(this.#told) ? this.#tell(input.slice(this.#told.length)) : [];
    return [...rest, this.event('response.custom_tool_call_input.done', { input }), this.finished(status)];
  }
  protected item(status: string): Record<string, unknown> {
    return { id: this.id, type: 'custom_tool_call', status, ...this.called, input: this.text === '' ? '' : toInput(this.text) };
  }
  #tell(delta: string): ItemEvent[] {
    this.#told += delta;
    return delta === '' ? [] : [this.event('response.custom_tool_call_input.delta', { delta })];
  }
}

export type CallItem = FunctionCallItem | CustomCallItem;

/** `custom`: names of the tools whose input is free text. */
export function createCallItem(response: string, index: number, called: Called, custom: ReadonlySet<string>): CallItem {
  return custom.has(called.name) ? new CustomCallItem(response, index, called) : new FunctionCallItem(response, index, called);
}

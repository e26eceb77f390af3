import type { HermesError } from '../../contracts/errors.ts';
import type { Facts } from '../../contracts/exchange.ts';
import type { Batch, Outcome, Writer } from '../../contracts/stream.ts';
import type { ChatChunk, Delta, ToolCallDelta, Usage } from '../../wire/chat.ts';
import { stringifyJson } from '../../wire/json.ts';
import { signedThinkingOf } from '../../wire/signed-thinking.ts';
import { cutEvents, readEvent } from '../../wire/sse.ts';
import { toAnthropicUsage, toMessageId, toStopReason, toThinking } from './to-answer.ts';
import { toAnthropicError } from './to-error.ts';

const EVENT_NAME = /^event: ?(\w+)/m;

/** A block that is open, or waits until the one before it is complete. */
interface OpenBlock {
  kind: 'text' | 'thinking' | 'tool_use';
  /** Of a tool call: the canonical index. */
  call: number;
  start: Record<string, unknown>;
  /** Of a tool call: its arguments so far. */
  text: string;
  /** Deltas that wait. */
  held: Record<string, unknown>[];
}

/**
 * Canonical chunks as Anthropic's named events. One block at a time: tool calls that interleave are put one behind the
 * other. `message_delta` waits for the end, since usage may come after the finish reason.
 */
export class AnthropicWriter implements Writer {
  #events: string[] = [];
  #started = false;
  #index = 0;
  #open: OpenBlock | undefined;
  #waiting: OpenBlock[] = [];
  /** Signed thinking has been told: the list that comes with the finish reason repeats it. */
  #signed = false;
  #content = false;
  #refused = false;
  #usage: Usage | undefined;
  #finish: string | undefined;
  #marks: Record<string, unknown> = {};
  /** `message_delta` as an Anthropic upstream said it: it waits for the end, too. */
  #ending: Uint8Array[] = [];
  #relays = true;

  /** Events of an Anthropic upstream go out as they came, until one chunk had to be written: numbering is then ours. */
  relay(batch: Batch): Uint8Array | undefined {
    const events = this.#relays && batch.bytes !== undefined ? cutEvents(Buffer.from(batch.bytes)) : [];
    const names = events.map((event) => EVENT_NAME.exec(event.toString('latin1'))?.[1]);
    // The SDKs pass over events without a name; a second message_start is another round of the same answer.
    if (events.length === 0 || names.includes(undefined) || (this.#started && names.includes('message_start'))) return undefined;
    const out: Uint8Array[] = [];
    for (const [at, event] of events.entries()) {
      this.#follow(names[at] ?? '', event);
      if (names[at] === 'message_delta') this.#ending.push(event);
      else out.push(event);
    }
    return Buffer.concat(out);
  }

  /** Keeps the state right, should the rest have to be written here. */
  #follow(name: string, event: Buffer): void {
    if (name === 'message_start') this.#started = true;
    if (name === 'content_block_stop') {
      this.#open = undefined;
      this.#index++;
    }
    if (name !== 'content_block_start') return;
    this.#content = true;
    const { content_block: block } = JSON.parse(readEvent(event).data ?? '{}');
    const kind = block?.type === 'text' || block?.type === 'thinking' ? block.type : 'tool_use';
    this.#open = { kind, call: -1, start: {}, text: '{}', held: [] };
  }

  write(chunk: ChatChunk): Uint8Array {
    this.#relays = false;
    this.#ending = [];
    const { degraded, original } = chunk;
    this.#marks = { ...(degraded === undefined ? {} : { degraded }), ...(original === undefined ? {} : { original }) };
    if (!this.#started) this.#start(chunk);
    if (chunk.usage) this.#usage = chunk.usage;
    this.#sign(signedThinkingOf(chunk));
    for (const choice of chunk.choices ?? []) {
      if (choice.index !== 0) continue;
      if (choice.delta) this.#add(choice.delta);
      if (choice.finish_reason) {
        this.#finish = choice.finish_reason;
        this.#closeAll();
      }
    }
    return this.#take();
  }

  end(outcome: Outcome, facts: Facts, hermes?: Readonly<Record<string, unknown>>): Uint8Array {
    const more = hermes ? { hermes } : {};
    if (outcome.error) return this.#fail(outcome.error, facts);
    if (this.#ending.length > 0) {
      this.#emit('message_stop', more);
      return Buffer.concat([...this.#ending, this.#take()]);
    }
    if (!this.#started) this.#start({ id: 'hermes', object: 'chat.completion.chunk', created: 0, model: facts.model ?? '', choices: [] });
    this.#closeAll();
    const usage = toAnthropicUsage(this.#usage ?? facts.usage);
    this.#emit('message_delta', {
      delta: { stop_reason: toStopReason(this.#finish ?? facts.finishReason, facts, this.#refused), stop_sequence: null },
      usage,
      ...this.#marks,
    });
    this.#emit('message_stop', more);
    return this.#take();
  }

  #fail(error: HermesError, facts: Facts): Uint8Array {
    this.#events = [];
    this.#events.push(`event: error\ndata: ${stringifyJson(toAnthropicError(error, facts))}\n\n`);
    return this.#take();
  }

  #start({ id, model }: ChatChunk): void {
    this.#started = true;
    // The input is not known yet; the SDKs take the counters of message_delta.
    const usage = toAnthropicUsage(undefined);
    this.#emit('message_start', {
      message: { id: toMessageId(id), type: 'message', role: 'assistant', model, content: [], stop_reason: null, stop_sequence: null, usage },
      ...this.#marks,
    });
  }

  #add(delta: Delta): void {
    const late = toThinking(delta.thinking_blocks);
    const whole = late.length > 0 && !this.#signed && !this.#content;
    if (whole) this.#sign(late.map(({ block }) => block));
    else if (delta.reasoning_content)
      this.#put('thinking', { type: 'thinking', thinking: '', signature: '' }, { type: 'thinking_delta', thinking: delta.reasoning_content });
    if (delta.refusal) this.#refused = true;
    const text = `${delta.content ?? ''}${delta.refusal ?? ''}`;
    if (text !== '') this.#put('text', { type: 'text', text: '' }, { type: 'text_delta', text });
    for (const call of delta.tool_calls ?? []) this.#addCall(call);
  }

  /** Ends the open thinking block with its signature; blocks that were not told yet are told whole. */
  #sign(blocks: readonly Record<string, unknown>[]): void {
    for (const { position: _position, ...block } of blocks) {
      this.#signed = true;
      if (block.type === 'thinking' && this.#open?.kind === 'thinking') {
        this.#delta({ type: 'signature_delta', signature: block.signature });
        this.#close();
        continue;
      }
      this.#closeAll();
      if (block.type === 'thinking') {
        this.#put(
          'thinking',
          { type: 'thinking', thinking: '', signature: '' },
          ...(block.thinking ? [{ type: 'thinking_delta', thinking: block.thinking }] : []),
        );
        this.#delta({ type: 'signature_delta', signature: block.signature });
      } else this.#begin({ kind: 'text', call: -1, start: block, text: '', held: [] });
      this.#close();
    }
  }

  /** Adds to the open block of this kind, or to a new one. */
  #put(kind: 'text' | 'thinking', start: Record<string, unknown>, ...deltas: Record<string, unknown>[]): void {
    this.#content = true;
    const last = this.#waiting.at(-1) ?? this.#open;
    const target = last?.kind === kind ? last : this.#place({ kind, call: -1, start, text: '', held: [] });
    for (const delta of deltas) this.#give(target, delta);
  }

  #addCall({ index, id, function: called }: ToolCallDelta): void {
    this.#content = true;
    let block = [this.#open, ...this.#waiting].find((one) => one?.kind === 'tool_use' && one.call === index);
    if (!block)
      block = this.#place({
        kind: 'tool_use',
        call: index,
        start: { type: 'tool_use', id: id ?? `call_${index}`, name: called?.name ?? '', input: {} },
        text: '',
        held: [],
      });
    const fragment = called?.arguments ?? '';
    if (fragment === '') return;
    block.text += fragment;
    this.#give(block, { type: 'input_json_delta', partial_json: fragment });
    if (block === this.#open && this.#waiting.length > 0 && isComplete(block)) this.#next();
  }

  /** Opens a block, or lets it wait while a tool call's arguments are not complete. */
  #place(block: OpenBlock): OpenBlock {
    if (this.#waiting.length > 0 || (this.#open?.kind === 'tool_use' && !isComplete(this.#open))) this.#waiting.push(block);
    else {
      this.#close();
      this.#begin(block);
    }
    return block;
  }

  #give(block: OpenBlock, delta: Record<string, unknown>): void {
    if (block === this.#open) this.#delta(delta);
    else block.held.push(delta);
  }

  #begin(block: OpenBlock): void {
    this.#open = block;
    this.#emit('content_block_start', { index: this.#index, content_block: block.start });
    for (const delta of block.held.splice(0)) this.#delta(delta);
  }

  /** Closes the open block, and goes on with those that wait up to the first incomplete call. */
  #next(): void {
    do {
      this.#close();
      const block = this.#waiting.shift();
      if (block) this.#begin(block);
    } while (this.#waiting.length > 0 && (this.#open?.kind !== 'tool_use' || isComplete(this.#open)));
  }

  #closeAll(): void {
    while (this.#open || this.#waiting.length > 0) {
      this.#close();
      const block = this.#waiting.shift();
      if (block) this.#begin(block);
    }
  }

  #close(): void {
    if (!this.#open) return;
    this.#emit('content_block_stop', { index: this.#index });
    this.#open = undefined;
    this.#index++;
  }

  #delta(delta: Record<string, unknown>): void {
    this.#emit('content_block_delta', { index: this.#index, delta });
  }

  #emit(type: string, fields: Record<string, unknown>): void {
    this.#events.push(`event: ${type}\ndata: ${stringifyJson({ type, ...fields })}\n\n`);
  }

  #take(): Uint8Array {
    const text = this.#events.join('');
    this.#events = [];
    return Buffer.from(text);
  }
}

function isComplete(block: OpenBlock): boolean {
  try {
    JSON.parse(block.text);
    return true;
  } catch {
    return false;
  }
}

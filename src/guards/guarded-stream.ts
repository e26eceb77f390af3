import type { HermesError } from '../contracts/errors.ts';
import { toHermesError } from '../contracts/errors.ts';
import type { Batch, Chunk, ChunkStream } from '../contracts/stream.ts';
import { batchOf, makeChunk } from '../wire/batch.ts';
import type { ChatChunk, ChunkChoice, Delta, ToolCallDelta } from '../wire/chat.ts';
import { setSignedThinking, signedThinkingOf } from '../wire/signed-thinking.ts';
import { guardThinking, maskIn, type OutputGuard } from './guarded-answer.ts';
import { TextWindow } from './text-window.ts';

/** Members of a delta that are text in pieces. */
const TEXTS = ['content', 'reasoning_content', 'reasoning', 'refusal'] as const;
type Field = (typeof TEXTS)[number];

/**
 * A stream in which nothing is left to be found, whatever the pieces it comes in. A batch in which nothing was found or held
 * goes on as it came; texts of one batch that are changed go out as one piece.
 */
export class GuardedStream implements ChunkStream {
  readonly #source: ChunkStream;
  readonly #guard: OutputGuard;
  readonly #choices = new Map<number, GuardedChoice>();
  #like: ChatChunk | undefined;
  #ended = false;

  constructor(source: ChunkStream, guard: OutputGuard) {
    this.#source = source;
    this.#guard = guard;
  }

  async read(): Promise<Batch | null> {
    while (!this.#ended) {
      const next = this.#source.read();
      const batch = next instanceof Promise ? await next : next;
      this.#ended = batch === null;
      try {
        const passed = batch === null ? this.#rest() : this.#pass(batch);
        if (passed) return passed;
      } catch (thrown) {
        const error = toHermesError(thrown);
        await this.#source.cancel(error);
        throw error;
      }
    }
    return null;
  }

  cancel(reason?: HermesError): Promise<void> | void {
    return this.#source.cancel(reason);
  }

  #pass(batch: Batch): Batch | undefined {
    const out: Chunk[] = [];
    let changed = false;
    let text: { chunk: ChatChunk; choice: ChunkChoice; piece: string } | undefined;
    const flush = (): void => {
      if (text === undefined) return;
      const { chunk, choice, piece } = text;
      text = undefined;
      const guarded = this.#choice(choice.index).text('content', piece);
      changed ||= guarded.length !== piece.length || guarded !== piece;
      if (guarded !== '') out.push(withDelta(chunk, choice, { ...choice.delta, content: guarded }));
    };
    for (const chunk of batch.chunks) {
      const { view } = chunk;
      this.#like ??= view;
      const choice = plainText(view);
      if (choice && !this.#choice(choice.index).switches('content')) {
        if (text && text.choice.index !== choice.index) flush();
        if (text) text.piece += choice.delta?.content ?? '';
        else text = { chunk: view, choice, piece: choice.delta?.content ?? '' };
        continue;
      }
      flush();
      const made = this.#other(view);
      changed ||= made !== undefined;
      out.push(...(made ?? [chunk]));
    }
    flush();
    if (!changed) return batch;
    return out.length > 0 ? batchOf(out) : undefined;
  }

  /** An event that is more than a piece of text; undefined: it stays. */
  #other(view: Readonly<ChatChunk>): Chunk[] | undefined {
    const before: Chunk[] = [];
    let changed = false;
    const choices = (view.choices ?? []).map((choice) => {
      const guarded = this.#choice(choice.index);
      const { rest, delta } = guarded.delta(choice.delta, Boolean(choice.finish_reason));
      for (const piece of rest) before.push(withDelta(view, { index: choice.index, finish_reason: null }, piece));
      const finish_reason = choice.finish_reason && guarded.cut ? 'length' : choice.finish_reason;
      const silent = choice.logprobs && this.#guard.rules.changes;
      if (delta === choice.delta && finish_reason === choice.finish_reason && !silent) return choice;
      changed = true;
      // Tokens spell the text as it was.
      return { ...choice, ...(delta ? { delta } : {}), ...(finish_reason === undefined ? {} : { finish_reason }), ...(silent ? { logprobs: null } : {}) };
    });
    const signed = signedThinkingOf(view);
    const kept = signed.length > 0 ? guardThinking(signed, this.#guard) : signed;
    if (!changed && before.length === 0 && kept === signed) return undefined;
    const made: ChatChunk = { ...view, choices };
    if (Array.isArray(kept) && kept !== signed) setSignedThinking(made, kept);
    return [...before, makeChunk(made)];
  }

  /** The stream is over without having said so for every choice. */
  #rest(): Batch | undefined {
    const like = this.#like;
    if (like === undefined) return undefined;
    const out: Chunk[] = [];
    for (const [index, choice] of this.#choices) for (const piece of choice.rest()) out.push(withDelta(like, { index, finish_reason: null }, piece));
    return out.length > 0 ? batchOf(out) : undefined;
  }

  #choice(index: number): GuardedChoice {
    let choice = this.#choices.get(index);
    if (choice === undefined) {
      choice = new GuardedChoice(this.#guard);
      this.#choices.set(index, choice);
    }
    return choice;
  }
}

/** The choice of an event that is a piece of content and nothing else. */
function plainText(view: Readonly<ChatChunk>): ChunkChoice | undefined {
  const [choice, more] = view.choices ?? [];
  if (choice === undefined || more !== undefined || view.usage || choice.finish_reason || choice.logprobs || signedThinkingOf(view).length > 0)
    return undefined;
  const { delta } = choice;
  if (!delta || typeof delta.content !== 'string' || delta.content === '') return undefined;
  for (const key in delta) if (key !== 'content') return undefined;
  return choice;
}

function withDelta(chunk: Readonly<ChatChunk>, choice: ChunkChoice, delta: Delta): Chunk {
  const { usage: _usage, choices: _choices, ...head } = chunk;
  const made: ChatChunk = { ...head, choices: [{ ...choice, delta }] };
  // Signed thinking goes with the event that brought it, behind what was held.
  if (signedThinkingOf(made).length > 0) setSignedThinking(made, []);
  return makeChunk(made);
}

/** One choice of a stream: a window for each of its texts, one of them open at a time. */
class GuardedChoice {
  readonly #guard: OutputGuard;
  readonly #windows = new Map<string, TextWindow>();
  #current: string | undefined;

  constructor(guard: OutputGuard) {
    this.#guard = guard;
  }

  get cut(): boolean {
    return this.#guard.size?.full ?? false;
  }

  /** Does this text end another, whose held end must go out first? */
  switches(name: string): boolean {
    return this.#current !== undefined && this.#current !== name && (this.#windows.get(this.#current)?.holds ?? false);
  }

  text(name: string, piece: string, json = false): string {
    this.#current = name;
    return this.#sized(this.#window(name, json).push(piece));
  }

  /** The delta with its texts changed (the same one when they stay), and what has to go out before it. */
  delta(delta: Delta | undefined, last: boolean): { rest: Delta[]; delta: Delta | undefined } {
    const rest: Delta[] = [];
    let out = delta;
    for (const name of TEXTS) {
      const piece = delta?.[name];
      if (typeof piece !== 'string' || piece === '') continue;
      rest.push(...this.#ended(name));
      const text = this.text(name, piece);
      if (text !== piece) out = { ...out, [name]: text };
    }
    if (delta?.tool_calls?.length) {
      const calls = delta.tool_calls.map((call) => this.#call(call, rest));
      if (calls.some((call, at) => call !== delta.tool_calls?.[at])) out = { ...out, tool_calls: calls };
    }
    if (delta?.thinking_blocks !== undefined) {
      const blocks = guardThinking(delta.thinking_blocks, this.#guard);
      if (blocks !== delta.thinking_blocks) out = { ...out, thinking_blocks: blocks };
    }
    if (last) {
      const held = this.rest();
      // What this very event brought goes before its finish, too.
      if (held.length > 0 && out) {
        const { content, reasoning_content, reasoning, refusal, tool_calls, ...others } = out;
        const said = Object.fromEntries(Object.entries({ content, reasoning_content, reasoning, refusal, tool_calls }).filter(([, value]) => value));
        if (Object.keys(said).length > 0) {
          rest.push(said);
          out = others;
        }
      }
      rest.push(...held);
    }
    return { rest, delta: out };
  }

  /** The held ends of all texts. */
  rest(): Delta[] {
    return [...this.#windows.keys()].flatMap((name) => this.#flush(name));
  }

  #call(call: ToolCallDelta, rest: Delta[]): ToolCallDelta {
    const name = `call ${call.index}`;
    // A call that opens ends what was said before it, even where it brings no arguments yet.
    rest.push(...this.#ended(name));
    this.#current = name;
    const piece = call.function?.arguments;
    if (!piece) return call;
    const text = this.text(name, piece, true);
    return text === piece ? call : { ...call, function: { ...call.function, arguments: text } };
  }

  #ended(next: string): Delta[] {
    return this.#current === undefined || this.#current === next ? [] : this.#flush(this.#current);
  }

  #flush(name: string): Delta[] {
    const text = this.#sized(this.#windows.get(name)?.push('', true) ?? '');
    if (text === '') return [];
    if (!name.startsWith('call ')) return [{ [name as Field]: text }];
    return [{ tool_calls: [{ index: Number(name.slice(5)), function: { arguments: text } }] }];
  }

  #sized(text: string): string {
    return this.#guard.size?.take(text) ?? text;
  }

  #window(name: string, json: boolean): TextWindow {
    let window = this.#windows.get(name);
    if (window === undefined) {
      const { rules, vault, onHit } = this.#guard;
      // Thinking may be signed as it is: see guardThinking.
      const restored = name.startsWith('reasoning') ? vault.masking : vault;
      window = new TextWindow({ rules: rules.empty ? undefined : rules, vault: restored, json, onHit, replace: maskIn(this.#guard) });
      this.#windows.set(name, window);
    }
    return window;
  }
}

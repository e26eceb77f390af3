import type { HermesError } from '../contracts/errors.ts';
import { toHermesError } from '../contracts/errors.ts';
import type { Batch, Chunk, ChunkStream } from '../contracts/stream.ts';
import { batchOf, makeChunk } from '../wire/batch.ts';
import type { ChatChunk, ChunkChoice, Delta } from '../wire/chat.ts';
import { setSignedThinking, signedThinkingOf } from '../wire/signed-thinking.ts';
import { guardAround, guardThinking, hasMore, type OutputGuard } from './guarded-answer.ts';
import { GuardedChoice } from './guarded-choice.ts';
import { guardError } from './guarded-error.ts';
import { UnsaidEvents } from './unsaid-events.ts';

/**
 * A stream in which nothing is left to be found, whatever the pieces it comes in. A batch in which nothing was found or held
 * goes on as it came; texts of one batch that are changed go out as one piece.
 */
export class GuardedStream implements ChunkStream {
  readonly #source: ChunkStream;
  readonly #guard: OutputGuard;
  readonly #ofErrors: OutputGuard;
  readonly #choices = new Map<number, GuardedChoice>();
  readonly #unsaid: UnsaidEvents;
  #like: ChatChunk | undefined;
  #ended = false;

  /** `ofErrors`: for what breaks it off. */
  constructor(source: ChunkStream, guard: OutputGuard, ofErrors: OutputGuard = guard) {
    this.#source = source;
    this.#guard = guard;
    this.#ofErrors = ofErrors;
    this.#unsaid = new UnsaidEvents(guard);
  }

  async read(): Promise<Batch | null> {
    while (!this.#ended) {
      let batch: Batch | null;
      try {
        const next = this.#source.read();
        batch = next instanceof Promise ? await next : next;
      } catch (thrown) {
        throw guardError(toHermesError(thrown), this.#ofErrors);
      }
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
    let changed = !this.#unsaid.pass(batch);
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
      const around = guardAround(choice, this.#guard);
      if (delta === choice.delta && finish_reason === choice.finish_reason && !silent && around === choice) return choice;
      changed = true;
      // Tokens spell the text as it was.
      return { ...around, ...(delta ? { delta } : {}), ...(finish_reason === undefined ? {} : { finish_reason }), ...(silent ? { logprobs: null } : {}) };
    });
    const signed = signedThinkingOf(view);
    const kept = signed.length > 0 ? guardThinking(signed, this.#guard) : signed;
    const around = guardAround(view, this.#guard);
    if (!changed && before.length === 0 && kept === signed && around === view) return undefined;
    const made: ChatChunk = { ...around, choices };
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
  if (!delta || typeof delta.content !== 'string' || delta.content === '' || hasMore(view) || hasMore(choice)) return undefined;
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

import { HermesError, isAbort, toHermesError } from '../contracts/errors.ts';
import type { Exchange, Facts } from '../contracts/exchange.ts';
import type { Batch, Chunk, ChunkStream, Outcome } from '../contracts/stream.ts';
import { batchOf, makeChunk } from '../wire/batch.ts';
import { hasContent } from '../wire/chat.ts';
import { isRecord } from '../wire/json.ts';
import { cancelQuietly } from '../wire/streams.ts';
import { type Entry, type LayerFault, runEnds } from './entry.ts';

/**
 * A stream with the hooks of the layers that it has passed: one flat list, inner layers first. Its reader learns of the end
 * only after their `onEnd`s have run.
 */
export class TappedStream implements ChunkStream {
  readonly #source: ChunkStream;
  readonly #exchange: Exchange;
  readonly #facts: () => Facts;
  readonly #fault: LayerFault;
  readonly #entries: Entry[] = [];
  /** Entries whose `onChunk` may look or change; optional ones leave when they throw. */
  #taps: Entry[] = [];
  #finishReason: string | undefined;
  #over = false;

  constructor(source: ChunkStream, exchange: Exchange, facts: () => Facts, fault: LayerFault) {
    this.#source = source;
    this.#exchange = exchange;
    this.#facts = facts;
    this.#fault = fault;
  }

  get over(): boolean {
    return this.#over;
  }

  attach(entry: Entry): void {
    entry.attached = true;
    if (entry.layer.hooks.onChunk) this.#taps.push(entry);
    if (!entry.layer.hooks.onEnd) return;
    // Inner ones first; those of a body that became a stream later on come late.
    const place = this.#entries.findIndex((other) => other.index < entry.index);
    this.#entries.splice(place < 0 ? this.#entries.length : place, 0, entry);
  }

  read(): Batch | null | Promise<Batch | null> {
    if (this.#over) return null;
    try {
      const batch = this.#source.read();
      if (batch instanceof Promise)
        return batch.then(
          (value) => this.#pass(value),
          (thrown) => this.#fail(thrown),
        );
      return this.#pass(batch);
    } catch (thrown) {
      return this.#fail(thrown);
    }
  }

  async cancel(reason?: HermesError): Promise<void> {
    if (this.#over) return;
    this.#over = true;
    const error = reason ?? new HermesError('client_closed', 'The client closed the connection.');
    await cancelQuietly(this.#source, error);
    // Whoever cancels has left: an end that fails has nobody to tell, and must not become a rejection that nobody awaits.
    await runEnds(this.#entries, this.#toOutcome(error), this.#fault);
  }

  #pass(batch: Batch | null): Batch | null | Promise<Batch | null> {
    if (batch === null) return this.#complete();
    if (batch.marked && batch.bytes === undefined) this.#note(batch);
    if (this.#taps.length === 0) return batch;
    try {
      return this.#tap(batch);
    } catch (thrown) {
      const error = toHermesError(thrown);
      return cancelQuietly(this.#source, error).then(() => this.#fail(error));
    }
  }

  #tap(batch: Batch): Batch {
    let chunks: readonly Chunk[] = batch.chunks;
    let changed = false;
    for (const entry of [...this.#taps]) {
      if (entry.layer.hooks.watches) {
        for (const chunk of chunks) this.#call(entry, chunk);
        continue;
      }
      changed = true;
      const passed: Chunk[] = [];
      for (const chunk of chunks) {
        const result = hasContent(chunk.view) ? this.#call(entry, chunk) : chunk;
        if (result) passed.push(result);
      }
      chunks = passed;
    }
    if (!changed) return batch;
    const same = chunks.length === batch.chunks.length && chunks.every((chunk, index) => chunk === batch.chunks[index] && chunk.raw !== undefined);
    return same ? batch : batchOf(chunks, batch.form);
  }

  #call(entry: Entry, chunk: Chunk): Chunk | undefined {
    try {
      const result = entry.layer.hooks.onChunk?.(chunk, entry.exchange, entry.local);
      return result === undefined || result === chunk || result.view !== undefined ? result : toChunk(result);
    } catch (thrown) {
      const error = this.#fault(entry, thrown);
      if (!entry.layer.optional) throw error;
      this.#taps = this.#taps.filter((other) => other !== entry);
      return chunk;
    }
  }

  /** Streams of our own making carry their facts in their chunks alone; relayed ones have them in `facts` already. */
  #note(batch: Batch): void {
    for (const { view } of batch.chunks) {
      for (const choice of view.choices ?? []) if (choice.finish_reason) this.#finishReason = choice.finish_reason;
      if (view.usage) this.#facts().usage ??= view.usage;
    }
  }

  #toOutcome(error?: HermesError): Outcome {
    const { usage, finishReason = this.#finishReason } = this.#facts();
    const finished = finishReason !== undefined;
    // A client that leaves after the finish reason has had its answer.
    const status = error === undefined || (finished && error.code === 'client_closed') ? 'complete' : isAbort(error) ? 'aborted' : 'failed';
    return { status, ...(error && status !== 'complete' ? { error } : {}), ...(finished ? { finishReason } : {}), ...(usage ? { usage } : {}) };
  }

  #complete(): null | Promise<null> {
    this.#over = true;
    const ends = this.#end(this.#toOutcome());
    return ends === undefined ? null : ends.then(() => null);
  }

  async #fail(thrown: unknown): Promise<never> {
    const error = toHermesError(thrown);
    if (!this.#over) {
      this.#over = true;
      await this.#end(this.#toOutcome(error));
    }
    throw error;
  }

  /** Rejects when an `onEnd` turned the end into an error. */
  #end(outcome: Outcome): Promise<void> | undefined {
    if (this.#entries.length === 0) return undefined;
    return runEnds(this.#entries, outcome, this.#fault).then((failed) => {
      if (failed) throw failed;
    });
  }
}

/** Of an object that a plugin made, its data counts. */
function toChunk({ data }: Pick<Chunk, 'data'>): Chunk {
  if (!isRecord(data)) throw new Error('onChunk gave back what is no chunk: an object with `data`, or undefined to drop it');
  return makeChunk(data);
}

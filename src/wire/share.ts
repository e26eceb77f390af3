import { HermesError, toHermesError } from '../contracts/errors.ts';
import type { Batch, ChunkStream } from '../contracts/stream.ts';
import { sizeOf } from './streams.ts';

export interface Shared {
  /** A reader of its own, from the stream's beginning. */
  open(): ChunkStream;
  /** A reader of what is still held and is to come: for whoever wants the stream's end alone. */
  rest(): ChunkStream;
  /** Every batch from the beginning is still held: more readers may open. */
  readonly whole: boolean;
  /** What came so far. */
  readonly batches: readonly Batch[];
}
export interface ShareOptions {
  /** The stream is over, before any reader learns of it; a rejection becomes the end. */
  over?: (error: HermesError | undefined) => Promise<void> | undefined;
  /** Beyond these bytes the beginning is let go of: whoever reads goes on, nobody else may open. */
  maxBytes?: number;
}

/**
 * Many readers of one stream: readers at the log's end await one common read, so that the fastest pulls for all and a slow
 * one slows nobody. A reader that cancels only leaves; whoever shares decides what becomes of the source.
 */
export function share(stream: ChunkStream, options: ShareOptions = {}): Shared {
  return new SharedStream(stream, options);
}

class SharedStream implements Shared {
  readonly #source: ChunkStream;
  readonly #options: ShareOptions;
  readonly #maxBytes: number;
  #log: Batch[] = [];
  /** Batches that were let go of. */
  #gone = 0;
  #bytes = 0;
  #reading = false;
  #over = false;
  #error: HermesError | undefined;
  readonly #readers = new Set<SharedReader>();
  /** Readers that wait to be woken. */
  waiting = 0;

  constructor(source: ChunkStream, options: ShareOptions) {
    this.#source = source;
    this.#options = options;
    this.#maxBytes = options.maxBytes ?? Number.POSITIVE_INFINITY;
  }

  get whole(): boolean {
    return this.#gone === 0;
  }
  get batches(): readonly Batch[] {
    return this.#log;
  }

  open(): ChunkStream {
    if (this.#gone > 0) throw new HermesError('overloaded', 'The answer to this request is too large to be joined; ask again when it has ended.');
    return this.rest();
  }

  rest(): ChunkStream {
    const reader = new SharedReader(this, this.#gone);
    this.#readers.add(reader);
    return reader;
  }

  leave(reader: SharedReader): void {
    this.#readers.delete(reader);
  }

  /** The batch at this place, null at the end, undefined when it is still to come; throws the stream's error. */
  at(place: number): Batch | null | undefined {
    const batch = this.#log[place - this.#gone];
    if (batch !== undefined || !this.#over) return batch;
    if (this.#error) throw this.#error;
    return null;
  }

  /** Nobody else reads: what comes may be handed on without waking anybody. */
  get lonely(): boolean {
    return !this.#reading && this.#readers.size === 1;
  }

  /** Reads for all; resolves when what was read is in the log. */
  pull(): Promise<unknown> | undefined {
    if (this.#reading) return undefined;
    this.#reading = true;
    try {
      const next = this.#source.read();
      if (next instanceof Promise) return next.then(this.#came, this.#failed);
      return this.#came(next);
    } catch (thrown) {
      return this.#failed(thrown);
    }
  }

  readonly #came = (batch: Batch | null): Promise<void> | undefined => {
    if (batch === null) return this.#ended(undefined);
    this.#log.push(batch);
    this.#bytes += sizeOf(batch);
    this.#reading = false;
    this.#wake();
    if (this.#bytes > this.#maxBytes) this.#letGo();
    return undefined;
  };

  readonly #failed = (thrown: unknown): Promise<void> | undefined => this.#ended(toHermesError(thrown));

  #ended(error: HermesError | undefined): Promise<void> | undefined {
    const settle = (final: HermesError | undefined): void => {
      this.#error = final;
      this.#over = true;
      this.#reading = false;
      this.#wake();
    };
    try {
      const waiting = this.#options.over?.(error);
      if (waiting instanceof Promise)
        return waiting.then(
          () => settle(error),
          (thrown) => settle(toHermesError(thrown)),
        );
      settle(error);
    } catch (thrown) {
      settle(toHermesError(thrown));
    }
    return undefined;
  }

  #wake(): void {
    if (this.waiting === 0) return;
    for (const reader of this.#readers) reader.wake();
  }

  #letGo(): void {
    const slowest = Math.min(...[...this.#readers].map((reader) => reader.place), this.#gone + this.#log.length);
    this.#gone += this.#log.splice(0, slowest - this.#gone).length;
  }
}

class SharedReader implements ChunkStream {
  place: number;
  readonly #shared: SharedStream;
  #left: HermesError | undefined;
  #waiting: { resolve: (batch: Batch | null) => void; reject: (error: HermesError) => void } | undefined;

  constructor(shared: SharedStream, place: number) {
    this.#shared = shared;
    this.place = place;
  }

  read(): Batch | null | Promise<Batch | null> {
    if (this.#left) throw this.#left;
    const held = this.#next();
    if (held !== undefined) return held;
    const lonely = this.#shared.lonely;
    const pulled = this.#shared.pull();
    // The common case is one reader: its read is the source's own, with one step added.
    if (lonely && pulled) return pulled.then(this.#took);
    const batch = this.#next();
    if (batch !== undefined) return batch;
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#shared.waiting++;
    });
  }

  readonly #took = (): Batch | null => {
    if (this.#left) throw this.#left;
    return this.#next() ?? null;
  };

  cancel(reason?: HermesError): void {
    if (this.#left) return;
    this.#left = reason ?? new HermesError('client_closed', 'The client closed the connection.');
    this.#shared.leave(this);
    this.#settle()?.reject(this.#left);
  }

  wake(): void {
    if (this.#waiting === undefined) return;
    try {
      const batch = this.#next();
      if (batch !== undefined) this.#settle()?.resolve(batch);
    } catch (thrown) {
      this.#settle()?.reject(toHermesError(thrown));
    }
  }

  #settle(): { resolve: (batch: Batch | null) => void; reject: (error: HermesError) => void } | undefined {
    const waiting = this.#waiting;
    if (waiting) this.#shared.waiting--;
    this.#waiting = undefined;
    return waiting;
  }

  #next(): Batch | null | undefined {
    const batch = this.#shared.at(this.place);
    if (batch) this.place++;
    return batch;
  }
}

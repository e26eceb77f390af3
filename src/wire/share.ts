import { HermesError, toHermesError } from '../contracts/errors.ts';
import type { Batch, ChunkStream } from '../contracts/stream.ts';
import { sizeOf } from './streams.ts';

export interface Shared {
  /** A reader of its own, from the stream's beginning. */
  open(): ChunkStream;
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
  #log: Batch[] = [];
  /** Batches that were let go of. */
  #gone = 0;
  #bytes = 0;
  #reading = false;
  #over = false;
  #error: HermesError | undefined;
  readonly #readers = new Set<SharedReader>();

  constructor(source: ChunkStream, options: ShareOptions) {
    this.#source = source;
    this.#options = options;
  }

  get whole(): boolean {
    return this.#gone === 0;
  }
  get batches(): readonly Batch[] {
    return this.#log;
  }

  open(): ChunkStream {
    if (this.#gone > 0) throw new HermesError('overloaded', 'The answer to this request is too large to be joined; ask again when it has ended.');
    const reader = new SharedReader(this);
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

  pull(): void {
    if (this.#reading) return;
    this.#reading = true;
    try {
      const next = this.#source.read();
      if (next instanceof Promise)
        next.then(
          (batch) => this.#came(batch),
          (thrown) => this.#ended(toHermesError(thrown)),
        );
      else this.#came(next);
    } catch (thrown) {
      this.#ended(toHermesError(thrown));
    }
  }

  #came(batch: Batch | null): void {
    if (batch === null) {
      this.#ended(undefined);
      return;
    }
    this.#log.push(batch);
    this.#bytes += sizeOf(batch);
    this.#reading = false;
    this.#wake();
    if (this.#bytes > (this.#options.maxBytes ?? Number.POSITIVE_INFINITY)) this.#letGo();
  }

  #ended(error: HermesError | undefined): void {
    const settle = (final: HermesError | undefined): void => {
      this.#error = final;
      this.#over = true;
      this.#reading = false;
      this.#wake();
    };
    try {
      const waiting = this.#options.over?.(error);
      if (waiting instanceof Promise)
        waiting.then(
          () => settle(error),
          (thrown) => settle(toHermesError(thrown)),
        );
      else settle(error);
    } catch (thrown) {
      settle(toHermesError(thrown));
    }
  }

  #wake(): void {
    for (const reader of this.#readers) reader.wake();
  }

  #letGo(): void {
    const slowest = Math.min(...[...this.#readers].map((reader) => reader.place), this.#gone + this.#log.length);
    this.#gone += this.#log.splice(0, slowest - this.#gone).length;
  }
}

class SharedReader implements ChunkStream {
  place = 0;
  readonly #shared: SharedStream;
  #left: HermesError | undefined;
  #waiting: { resolve: (batch: Batch | null) => void; reject: (error: HermesError) => void } | undefined;

  constructor(shared: SharedStream) {
    this.#shared = shared;
  }

  read(): Batch | null | Promise<Batch | null> {
    if (this.#left) throw this.#left;
    let batch = this.#next();
    if (batch !== undefined) return batch;
    this.#shared.pull();
    batch = this.#next();
    if (batch !== undefined) return batch;
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }

  cancel(reason?: HermesError): void {
    if (this.#left) return;
    this.#left = reason ?? new HermesError('client_closed', 'The client closed the connection.');
    this.#shared.leave(this);
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.reject(this.#left);
  }

  wake(): void {
    const waiting = this.#waiting;
    if (waiting === undefined) return;
    try {
      const batch = this.#next();
      if (batch === undefined) return;
      this.#waiting = undefined;
      waiting.resolve(batch);
    } catch (thrown) {
      this.#waiting = undefined;
      waiting.reject(toHermesError(thrown));
    }
  }

  #next(): Batch | null | undefined {
    const batch = this.#shared.at(this.place);
    if (batch) this.place++;
    return batch;
  }
}

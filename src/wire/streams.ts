import { HermesError, toHermesError } from '../contracts/errors.ts';
import type { Batch, Chunk, ChunkStream } from '../contracts/stream.ts';

/** What the edge, failover, tools and idempotency are made of: streams out of streams. All of them are pulled. */

/** A stream made by a generator of batches (tool rounds). Its `finally` runs on cancel, too. */
export function generate(make: (cancelled: () => HermesError | undefined) => AsyncGenerator<Batch, void, undefined>): ChunkStream {
  let reason: HermesError | undefined;
  let current: AsyncGenerator<Batch, void, undefined> | undefined;
  return {
    async read() {
      if (reason) throw reason;
      current ??= make(() => reason);
      const { done, value } = await current.next();
      if (reason) throw reason;
      return done ? null : value;
    },
    async cancel(why) {
      reason ??= why ?? new HermesError('client_closed', 'The client closed the connection.');
      await current?.return();
    },
  };
}

/** Gives these batches. */
export function replay(batches: readonly Batch[], error?: HermesError): ChunkStream {
  let next = 0;
  return {
    read() {
      const batch = batches[next];
      if (batch) {
        next++;
        return batch;
      }
      if (error) throw error;
      return null;
    },
    cancel() {
      next = batches.length;
    },
  };
}

export interface Held {
  /** Gives all of what was read, then goes on. */
  stream: ChunkStream;
  /** The chunk looked for came. */
  found: boolean;
  /** The stream ended before it. */
  ended: boolean;
  /** The stream failed before it; then `stream` gives what came and rejects. */
  error: HermesError | undefined;
}

/** Reads ahead until a chunk satisfies `until`, the end, or `maxBytes` (taken as found); gives all of it back. */
export async function hold(stream: ChunkStream, until: (chunk: Chunk) => boolean, maxBytes: number): Promise<Held> {
  const batches: Batch[] = [];
  let bytes = 0;
  try {
    for (;;) {
      const batch = await stream.read();
      if (batch === null) return { stream: replay(batches), found: false, ended: true, error: undefined };
      batches.push(batch);
      bytes += sizeOf(batch);
      if (bytes > maxBytes || batch.chunks.some(until)) return { stream: after(batches, stream), found: true, ended: false, error: undefined };
    }
  } catch (thrown) {
    const error = toHermesError(thrown);
    return { stream: replay(batches, error), found: false, ended: false, error };
  }
}

/** These batches, then the rest of the stream. */
export function after(batches: readonly Batch[], stream: ChunkStream): ChunkStream {
  let next = 0;
  return {
    read() {
      const batch = batches[next];
      if (batch === undefined) return stream.read();
      next++;
      return batch;
    },
    cancel(reason) {
      next = batches.length;
      return stream.cancel(reason);
    },
  };
}

/** Reads to the end; replays as read. Rejects with the stream's error, or `overloaded` beyond `maxBytes`. */
export async function whole(stream: ChunkStream, maxBytes: number): Promise<ChunkStream> {
  const batches: Batch[] = [];
  let bytes = 0;
  for (;;) {
    const batch = await stream.read();
    if (batch === null) return replay(batches);
    bytes += sizeOf(batch);
    if (bytes > maxBytes) {
      const error = new HermesError('overloaded', 'The answer is too large to be held back as a whole; ask without x-hermes-commit: complete.');
      await stream.cancel(error);
      throw error;
    }
    batches.push(batch);
  }
}

export interface Shared {
  /** A reader of its own, from the stream's beginning. */
  open(): ChunkStream;
  /** Every batch so far is kept and can be read from its beginning. */
  readonly complete: boolean;
  /** Bytes held. */
  readonly bytes: number;
}

/**
 * Many readers of one stream: readers at the log's end await one common read, so that the fastest pulls for all and a slow
 * one slows nobody. `idle` is called when the last reader has left before the end.
 */
export function share(stream: ChunkStream, idle: () => void): Shared {
  const log: Batch[] = [];
  let bytes = 0;
  let over = false;
  let failure: HermesError | undefined;
  let reading: Promise<void> | undefined;
  let readers = 0;

  const pull = async (): Promise<void> => {
    try {
      const batch = await stream.read();
      if (batch === null) over = true;
      else {
        log.push(batch);
        bytes += sizeOf(batch);
      }
    } catch (thrown) {
      failure = toHermesError(thrown);
      over = true;
    } finally {
      reading = undefined;
    }
  };

  return {
    get complete() {
      return over && failure === undefined;
    },
    get bytes() {
      return bytes;
    },
    open() {
      let next = 0;
      let left = false;
      readers++;
      const leave = (): void => {
        if (left) return;
        left = true;
        readers--;
        if (readers === 0 && !over) idle();
      };
      return {
        async read() {
          for (;;) {
            const batch = log[next];
            if (batch) {
              next++;
              return batch;
            }
            if (over) {
              leave();
              if (failure) throw failure;
              return null;
            }
            reading ??= pull();
            await reading;
          }
        },
        cancel() {
          leave();
        },
      };
    },
  };
}

/** Held bytes; what was made here counts by a rough guess. */
function sizeOf(batch: Batch): number {
  return batch.bytes?.byteLength ?? batch.chunks.length * 300;
}

import { HermesError, toHermesError } from '../contracts/errors.ts';
import type { Batch, Chunk, ChunkStream } from '../contracts/stream.ts';
import { someChunk } from './batch.ts';

/** Stops a stream whose end interests nobody any more: what fails on the way has been logged by whose it is. */
export async function cancelQuietly(stream: ChunkStream | undefined, reason: HermesError): Promise<void> {
  try {
    await stream?.cancel(reason);
  } catch {
    // The reason stands; a fault in stopping adds nothing to it.
  }
}

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
      if (bytes > maxBytes || someChunk(batch, until)) return { stream: after(batches, stream), found: true, ended: false, error: undefined };
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

/** Held bytes; what was made here counts by a rough guess. */
export function sizeOf(batch: Batch): number {
  return batch.bytes?.byteLength ?? batch.chunks.length * 300;
}

import { HermesError } from '../contracts/errors.ts';
import type { Batch, ChunkStream } from '../contracts/stream.ts';
import { sizeOf } from '../wire/streams.ts';

/** Bytes that all answers held back as a whole may take together. */
const MOST_HELD = 256 * 1024 ** 2;

/** The memory of `commit: complete`: what is held for all requests at once is bounded. */
export class HeldBytes {
  readonly #most: number;
  #bytes = 0;

  constructor(most = MOST_HELD) {
    this.#most = most;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Counts what is read of a stream; refuses it when there is no room left. */
  fill(stream: ChunkStream): Filling {
    let own = 0;
    const count = (batch: Batch | null): Batch | null => {
      if (batch === null) return null;
      own += sizeOf(batch);
      this.#bytes += sizeOf(batch);
      if (this.#bytes <= this.#most) return batch;
      throw new HermesError('overloaded', 'Too many whole answers are held back at this time; ask again soon, or without x-hermes-commit: complete.', {
        headers: { 'retry-after': '1' },
      });
    };
    return {
      stream: {
        async read() {
          return count(await stream.read());
        },
        cancel: (reason) => stream.cancel(reason),
      },
      letGo: () => {
        this.#bytes -= own;
        own = 0;
      },
    };
  }
}
export interface Filling {
  stream: ChunkStream;
  /** What was counted is held no longer. */
  letGo(): void;
}

/** The held answer: lets go when it was read to its end, or nobody wants the rest. */
export function untilRead(stream: ChunkStream, letGo: () => void): ChunkStream {
  return {
    async read() {
      const batch = await stream.read();
      if (batch === null) letGo();
      return batch;
    },
    cancel(reason) {
      letGo();
      return stream.cancel(reason);
    },
  };
}

import type { Environment } from '../../../contracts/telemetry.ts';

const EVERY_MS = 60_000;
/** A batch that was not confirmed is tried again within minutes; after a week its number is forgotten. */
const BATCH_MEMORY_MS = 7 * 86_400_000;

export interface Sweep {
  start(): void;
  stop(): void;
  /** Grows with every call: the order of values that were stored within one millisecond. */
  position(): number;
}

/** Removes expired values (they are invisible at once) and old batch numbers, now and then. */
export function createSweep(environment: Environment, run: (now: number, batchesBefore: number) => Promise<unknown>): Sweep {
  let timer: NodeJS.Timeout | undefined;
  let last = 0;
  return {
    start() {
      timer = setInterval(() => {
        const now = environment.now();
        // A store that is away says so by itself; the next sweep takes this one's share.
        run(now, now - BATCH_MEMORY_MS).catch(() => {});
      }, EVERY_MS);
      timer.unref();
    },
    stop: () => clearInterval(timer),
    position() {
      last = Math.max(last + 1, environment.now() * 1000);
      return last;
    },
  };
}

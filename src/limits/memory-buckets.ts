import { LRUCache } from 'lru-cache';
import { type BucketStore, type Demand, type Level, refill, toState, waitFor } from './bucket.ts';

const MAX_BUCKETS = 200_000;

/** Buckets of this process. The least recently used are forgotten, which makes them full: as they would be by then. */
export function createMemoryBuckets(): BucketStore {
  // By size, not `max`: that allocates the room for all of them at the start.
  const levels = new LRUCache<string, Level>({ maxSize: MAX_BUCKETS, sizeCalculation: () => 1 });
  const levelOf = (demand: Demand, now: number): number => refill(levels.get(demand.key), demand, now);
  return {
    take(demands, now) {
      const before = demands.map((demand) => levelOf(demand, now));
      for (const [index, demand] of demands.entries()) {
        const retryAfterMs = waitFor(before[index] ?? 0, demand);
        if (retryAfterMs > 0) return { refused: { index, retryAfterMs }, states: demands.map((other, at) => toState(before[at] ?? 0, other)) };
      }
      const states = demands.map((demand, index) => {
        const level = (before[index] ?? 0) - demand.amount;
        levels.set(demand.key, { level, at: now });
        return toState(level, demand);
      });
      return { refused: undefined, states };
    },
    adjust(demand, units, now) {
      levels.set(demand.key, { level: Math.min(demand.capacity, levelOf(demand, now) + units), at: now });
    },
  };
}

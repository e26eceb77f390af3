import { LRUCache } from 'lru-cache';
import type { BucketDemand } from '../contracts/hot-store.ts';
import { type BucketStore, GRAINS, type Level, needed, refill, toTaken } from './bucket.ts';

const MAX_BUCKETS = 200_000;

/** Buckets of this process. The least recently used are forgotten, which makes them full: as they would be by then. */
export function createMemoryBuckets({ now }: { now(): number }, max = MAX_BUCKETS): BucketStore {
  const levels = new LRUCache<string, Level>({ max });
  const change = (demand: BucketDemand, grains: number, at: number): void => {
    levels.set(demand.key, { grains, at: Math.max(at, levels.get(demand.key)?.at ?? at) });
  };
  const store: BucketStore = {
    take(demands) {
      const at = now();
      const before = demands.map((demand) => refill(levels.get(demand.key), demand, at));
      const refused = demands.findIndex((demand, index) => (before[index] ?? 0) < needed(demand));
      if (refused >= 0) return toTaken(demands, { refused, levels: before }, store);
      const after = demands.map((demand, index) => {
        const grains = (before[index] ?? 0) - demand.amount * GRAINS;
        change(demand, grains, at);
        return grains;
      });
      return toTaken(demands, { refused: undefined, levels: after }, store);
    },
    adjust(demands, units) {
      const at = now();
      for (const demand of demands) change(demand, Math.min(demand.capacity * GRAINS, refill(levels.get(demand.key), demand, at) + units * GRAINS), at);
    },
  };
  return store;
}

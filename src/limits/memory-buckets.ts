import { LRUCache } from 'lru-cache';
import type { BucketDemand } from '../contracts/hot-store.ts';
import { type BucketStore, GRAINS, type Level, needed, refill, toTaken } from './bucket.ts';

const MAX_BUCKETS = 200_000;

/** Buckets of this process. The least recently used are forgotten, which makes them full: as they would be by then. */
export function createMemoryBuckets({ now }: { now(): number }, max = MAX_BUCKETS): BucketStore {
  const levels = new LRUCache<string, Level>({ max });
  /** A level that is there is changed in place: setting it anew costs the cache more than all the rest. */
  const change = (demand: BucketDemand, known: Level | undefined, grains: number, at: number): void => {
    if (known === undefined) levels.set(demand.key, { grains, at });
    else {
      known.grains = grains;
      known.at = Math.max(at, known.at);
    }
  };
  const store: BucketStore = {
    take(demands) {
      const at = now();
      const known = demands.map(({ key }) => levels.get(key));
      const grains = demands.map((demand, index) => refill(known[index], demand, at));
      const refused = demands.findIndex((demand, index) => (grains[index] as number) < needed(demand));
      if (refused >= 0) return toTaken(demands, { refused, levels: grains }, store);
      for (const [index, demand] of demands.entries()) {
        const left = (grains[index] as number) - demand.amount * GRAINS;
        grains[index] = left;
        change(demand, known[index], left, at);
      }
      return toTaken(demands, { refused: undefined, levels: grains }, store);
    },
    adjust(demands, units) {
      const at = now();
      for (const demand of demands) {
        const known = levels.get(demand.key);
        change(demand, known, Math.min(demand.capacity * GRAINS, refill(known, demand, at) + units * GRAINS), at);
      }
    },
  };
  return store;
}

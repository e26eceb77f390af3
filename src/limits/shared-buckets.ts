import type { HotStore } from '../contracts/hot-store.ts';
import { type BucketStore, toTaken } from './bucket.ts';

/** Buckets of all instances. While the hot store is away each instance counts for itself. */
export function createSharedBuckets(hot: Pick<HotStore, 'healthy' | 'takeFromBuckets' | 'adjustBuckets'>, local: BucketStore): BucketStore {
  const take = hot.takeFromBuckets?.bind(hot);
  const adjust = hot.adjustBuckets?.bind(hot);
  if (take === undefined || adjust === undefined) return local;
  const shared: BucketStore = {
    take(demands) {
      if (!hot.healthy()) return local.take(demands);
      return take(demands).then(
        (levels) => toTaken(demands, levels, shared),
        () => local.take(demands),
      );
    },
    adjust(demands, units) {
      // A settlement that is lost leaves a reservation standing: the bucket fills up over it.
      adjust(demands, units).catch(() => undefined);
    },
  };
  return shared;
}

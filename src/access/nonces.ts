import { LRUCache } from 'lru-cache';
import type { HotStore } from '../contracts/hot-store.ts';
import type { Environment } from '../contracts/telemetry.ts';

const MOST_NONCES = 200_000;

/** Nonces that have been used: by all instances where the hot store is shared, by this one while that is away. */
export class Nonces {
  readonly #hot: Pick<HotStore, 'set'>;
  readonly #own: LRUCache<string, true>;

  constructor(hot: Pick<HotStore, 'set'>, environment: Environment) {
    this.#hot = hot;
    this.#own = new LRUCache({ max: MOST_NONCES, ttl: 1, ttlResolution: 0, perf: { now: () => environment.now() } });
  }

  /** True once for each nonce of a service. */
  async burn(service: string, nonce: string, ttlMs: number): Promise<boolean> {
    const key = `nonce:${encodeURIComponent(service)}:${encodeURIComponent(nonce)}`;
    // First here: what was used while the hot store was away stays used when it is back.
    if (this.#own.has(key)) return false;
    this.#own.set(key, true, { ttl: ttlMs });
    try {
      return await this.#hot.set(key, '1', ttlMs, true);
    } catch {
      return true;
    }
  }
}

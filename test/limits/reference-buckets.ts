import type { BucketDemand } from '../../src/contracts/hot-store.ts';

/**
 * Token buckets as their definition reads, and nothing else: every bucket keeps all that ever happened to it, and its level is
 * worked out from the beginning each time, in exact fractions of 60,000.
 */
export class ReferenceBuckets {
  readonly #events = new Map<string, { at: number; units: number }[]>();

  #level({ key, capacity, perMinute }: BucketDemand, at: number): bigint {
    const full = BigInt(capacity) * 60_000n;
    let level = full;
    let since = Number.NEGATIVE_INFINITY;
    for (const event of [...(this.#events.get(key) ?? []), { at, units: 0 }]) {
      if (event.at > since && since !== Number.NEGATIVE_INFINITY) level += BigInt(event.at - since) * BigInt(perMinute);
      since = Math.max(since, event.at);
      if (level > full) level = full;
      level += BigInt(event.units) * 60_000n;
      if (level > full) level = full;
    }
    return level;
  }
  #add(key: string, at: number, units: number): void {
    const events = this.#events.get(key) ?? [];
    this.#events.set(key, events);
    events.push({ at, units });
  }

  take(demands: readonly BucketDemand[], at: number): { refused: number | undefined; levels: number[] } {
    const levels = demands.map((demand) => this.#level(demand, at));
    const refused = demands.findIndex(({ amount, capacity }, index) => (levels[index] ?? 0n) < BigInt(Math.min(amount, capacity)) * 60_000n);
    if (refused >= 0) return { refused, levels: levels.map(Number) };
    for (const { key, amount } of demands) this.#add(key, at, -amount);
    return { refused: undefined, levels: demands.map((demand) => Number(this.#level(demand, at))) };
  }
  adjust(demands: readonly BucketDemand[], units: number, at: number): void {
    for (const { key } of demands) this.#add(key, at, units);
  }
}

export interface Step {
  at: number;
  demands: BucketDemand[];
  /** Instead of a taking. */
  adjust?: number;
}

/** A run of decisions as traffic makes them: bursts, pauses, several buckets at once, debts and settlements. Seeded. */
export function* steps(count: number, seed: number, keys: number): Generator<Step> {
  let state = seed;
  const random = (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  let at = 1_790_000_000_000;
  const kinds = [
    { capacity: 20, perMinute: 60, most: 1 },
    { capacity: 600, perMinute: 600, most: 1 },
    { capacity: 7, perMinute: 13, most: 3 },
    { capacity: 4000, perMinute: 4000, most: 6000 },
  ];
  for (let i = 0; i < count; i++) {
    // A clock that is set back now and then.
    at += random(50) === 0 ? random(20_000) : random(1000) === 0 ? -random(500) : random(40);
    const demands: BucketDemand[] = [];
    for (const [index, { capacity, perMinute, most }] of kinds.entries()) {
      if (random(2) === 0) demands.push({ key: `${index}/${random(keys)}`, amount: 1 + random(most), capacity, perMinute });
    }
    if (demands.length === 0) continue;
    yield random(5) === 0 ? { at, demands, adjust: random(2000) - 1000 } : { at, demands };
  }
}

/** One bucket's demand: `amount` units out of a bucket of `capacity` that fills by `perMinute`. */
export interface Demand {
  key: string;
  amount: number;
  capacity: number;
  perMinute: number;
}
export interface BucketState {
  /** Units left; negative while a debt is paid off. */
  remaining: number;
  capacity: number;
  /** Milliseconds until it is full again. */
  resetMs: number;
}
export interface Taken {
  /** The first demand that was refused, and when it would fit; undefined: all were taken. Nothing is taken when one is refused. */
  refused: { index: number; retryAfterMs: number } | undefined;
  states: BucketState[];
}
/** Where levels are kept: this process, or Redis for several instances. */
export interface BucketStore {
  /** All or nothing. */
  take(demands: readonly Demand[], now: number): Taken | Promise<Taken>;
  /** Gives units back (or, negative, takes them as a debt), without a refusal. */
  adjust(demand: Demand, units: number, now: number): void | Promise<void>;
}

export interface Level {
  level: number;
  at: number;
}

/** A level as of `now`; a bucket never seen is full. */
export function refill(known: Level | undefined, { capacity, perMinute }: Pick<Demand, 'capacity' | 'perMinute'>, now: number): number {
  if (known === undefined) return capacity;
  const elapsed = Math.max(0, now - known.at);
  return Math.min(capacity, known.level + (elapsed * perMinute) / 60_000);
}

/** How long until `demand` fits, 0 when it fits now. More than a full bucket fits when the bucket is full, and leaves a debt. */
export function waitFor(level: number, { amount, capacity, perMinute }: Demand): number {
  const needed = Math.min(amount, capacity);
  // A hair of tolerance: levels are sums of fractions.
  return level + 1e-9 >= needed ? 0 : ((needed - level) * 60_000) / perMinute;
}

export function toState(level: number, { capacity, perMinute }: Pick<Demand, 'capacity' | 'perMinute'>): BucketState {
  return { remaining: level, capacity, resetMs: Math.max(0, ((capacity - level) * 60_000) / perMinute) };
}

import type { BucketDemand, BucketLevels } from '../contracts/hot-store.ts';

/** Levels are counted in 60,000ths of a unit: what a minute's rate brings in a millisecond is a whole number of them, so nothing is ever rounded. */
export const GRAINS = 60_000;

export interface BucketState {
  /** Units left; negative while a debt is paid off. */
  remaining: number;
  /** Milliseconds until it is full again. */
  resetMs: number;
}
export interface Taken {
  /** The first demand that was refused, and when it would fit; undefined: all were taken. Nothing is taken when one is refused. */
  refused: { index: number; retryAfterMs: number } | undefined;
  states: BucketState[];
  /** Where they were taken, and where the settlement belongs. */
  from: BucketStore;
}
/** Where levels are kept: this process, or a hot store that instances share. */
export interface BucketStore {
  /** All or nothing. */
  take(demands: readonly BucketDemand[]): Taken | Promise<Taken>;
  /** Gives units back (or, negative, takes them as a debt), without a refusal. Never rejects. */
  adjust(demands: readonly BucketDemand[], units: number): void;
}

export interface Level {
  grains: number;
  /** Unix milliseconds. */
  at: number;
}

/** A level as of `now`; a bucket never seen is full. A clock that goes back brings nothing. */
export function refill(known: Level | undefined, { capacity, perMinute }: BucketDemand, now: number): number {
  if (known === undefined) return capacity * GRAINS;
  return Math.min(capacity * GRAINS, known.grains + Math.max(0, now - known.at) * perMinute);
}

/** What must be there for a demand to fit: more than a full bucket fits when the bucket is full, and leaves a debt. */
export function needed({ amount, capacity }: BucketDemand): number {
  // Taken from a level it would make it NaN, which is neither empty nor ever full again.
  if (!Number.isFinite(amount)) throw new RangeError('A demand on a limit must be a finite number.');
  return Math.min(amount, capacity) * GRAINS;
}

export function toTaken(demands: readonly BucketDemand[], { refused, levels }: BucketLevels, from: BucketStore): Taken {
  const states = demands.map((demand, index) => toState(levels[index] ?? 0, demand));
  const demand = refused === undefined ? undefined : demands[refused];
  if (refused === undefined || demand === undefined) return { refused: undefined, states, from };
  return { refused: { index: refused, retryAfterMs: Math.max(1, Math.ceil((needed(demand) - (levels[refused] ?? 0)) / demand.perMinute)) }, states, from };
}

function toState(grains: number, { capacity, perMinute }: BucketDemand): BucketState {
  return { remaining: grains / GRAINS, resetMs: Math.max(0, Math.ceil((capacity * GRAINS - grains) / perMinute)) };
}

import type { StoredMessage } from './cold-store.ts';

/** A session's newest messages, as the hot store keeps them. */
export interface HotSession {
  /** The cold store's version that this state belongs to; a hot state whose version cold has passed is stale. */
  version: number;
  system: StoredMessage[];
  /** Oldest first, at most `max_history_messages`, whole turns. */
  messages: StoredMessage[];
}
/** A lease on a name, for one holder at a time across instances. */
export interface Lease {
  /** Grows with each holder: a fencing token. */
  token: number;
  release(): Promise<void>;
}
/** What one request takes out of one token bucket. Whole numbers. */
export interface BucketDemand {
  key: string;
  /** Units. */
  amount: number;
  /** Units that the bucket holds when it is full; it is full when nobody has ever taken from it. */
  capacity: number;
  /** Units that come back in a minute: one 60,000th of it each millisecond. */
  perMinute: number;
}
export interface BucketLevels {
  /** The first demand that does not fit: then nothing is taken from any bucket. Undefined: all were taken. */
  refused: number | undefined;
  /** Of each demand's bucket, now: in 60,000ths of a unit, so that they are whole; negative while a debt is paid off. */
  levels: number[];
}
/**
 * Recent and fast; may vanish at any time. Keys are opaque strings that begin with the owner's identity. An engine that
 * is away rejects with `StoreUnavailable` within its per-command limit; callers fall back to cold.
 */
export interface HotStore {
  readonly name: 'memory' | 'redis';
  /** Seen by other instances too: then a hot state can be trusted without asking cold. */
  readonly shared: boolean;
  /**
   * How often the engine went away since the start; absent is never. Writes that this process could not make are put right before the
   * engine is used again. What another process could not write may still be stale then: after an outage a state's version is
   * checked against cold.
   */
  readonly outages?: number;
  /** The store's own: callers copy before they change. */
  getSession(key: string): Promise<HotSession | undefined>;
  /** Replaces the state unless the stored version is newer. Sliding expiry. */
  putSession(key: string, session: HotSession, ttlSeconds: number): Promise<void>;
  /** Appends a turn and trims to `maxMessages` whole turns, in one atomic step, when the stored version is `version - 1`; else drops the entry. */
  appendTurn(key: string, version: number, system: StoredMessage[], messages: StoredMessage[], maxMessages: number, ttlSeconds: number): Promise<void>;
  deleteSession(key: string): Promise<void>;
  /** Undefined: somebody else holds it. Expires by itself after `ttlMs` unless renewed by the store. */
  acquire(name: string, ttlMs: number): Promise<Lease | undefined>;
  /** Small shared values (idempotency records, nonces). `set` with `ifAbsent` tells whether it was set. */
  get(key: string): Promise<string | undefined>;
  set(key: string, value: string, ttlMs: number, ifAbsent?: boolean): Promise<boolean>;
  delete(key: string): Promise<void>;
  /**
   * Token buckets that instances share; absent: the engine has none. All demands or none, in one step. A demand larger than its
   * bucket fits when that is full. `at` (Unix milliseconds) is for tests: by default the engine's own clock counts.
   */
  takeFromBuckets?(demands: readonly BucketDemand[], at?: number): Promise<BucketLevels>;
  /** Gives `units` back to each bucket, or takes them as a debt when negative; never refused. */
  adjustBuckets?(demands: readonly BucketDemand[], units: number, at?: number): Promise<void>;
  /** Is it answering now? Never rejects. */
  healthy(): boolean;
  close(): Promise<void>;
}
export class StoreUnavailable extends Error {
  constructor(store: string, cause?: unknown) {
    super(`the ${store} store does not answer`, { cause });
    this.name = 'StoreUnavailable';
  }
}

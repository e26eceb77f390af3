import { setTimeout as pause } from 'node:timers/promises';
import { HermesError } from '../contracts/errors.ts';
import type { HotStore, Lease } from '../contracts/hot-store.ts';
import { idReused } from '../contracts/id-reused.ts';
import type { Log } from '../contracts/telemetry.ts';
import type { Outcome } from './outcome.ts';
import type { Outcomes } from './outcomes.ts';

/** A crashed holder's name is free after this; the store renews the lease of a living one. */
const LEASE_MS = 5000;
const RUNNING_MS = 600_000;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 250;
/** How long the word of a waiter counts; it says it anew at every look. */
const WAITING_MS = 2000;

/** What is known beyond this process: the hot store's leases on running requests, and who waits for them. Redis away: this process alone. */
export class OtherInstances {
  readonly #hot: HotStore;
  readonly #outcomes: Outcomes;
  readonly #log: Log;

  constructor(hot: HotStore, outcomes: Outcomes, log: Log) {
    this.#hot = hot;
    this.#outcomes = outcomes;
    this.#log = log;
  }

  get any(): boolean {
    return this.#hot.shared;
  }

  /** Takes the name, or waits for the instance that has it: its outcome, or its name when it fails, crashes or gives up. */
  async take(key: string, fingerprint: string, given: { up: boolean }): Promise<{ lease?: Lease | undefined; outcome?: Outcome | undefined }> {
    try {
      for (let wait = FIRST_PAUSE_MS; !given.up; wait = Math.min(wait * 1.5, LONGEST_PAUSE_MS)) {
        const lease = await this.lease(key);
        let outcome: Outcome | undefined;
        try {
          outcome = await this.#outcomes.fromHot(key);
        } catch (thrown) {
          // The store renews what it has leased for as long as this process lives.
          await lease?.release();
          throw thrown;
        }
        if (outcome) {
          await lease?.release();
          return { outcome };
        }
        if (lease) {
          // Only to tell another body from this one: nobody waits for it.
          this.#hot.set(`running:${key}`, fingerprint, RUNNING_MS).catch(() => undefined);
          return { lease };
        }
        const theirs = await this.#hot.get(`running:${key}`);
        if (theirs !== undefined && theirs !== fingerprint) throw idReused();
        await this.#hot.set(`waiting:${key}`, '1', WAITING_MS);
        await pause(wait);
      }
    } catch (thrown) {
      if (thrown instanceof HermesError) throw thrown;
      this.#log.debug({ err: thrown }, 'idempotency holds for this process alone');
    }
    return {};
  }

  lease(key: string): Promise<Lease | undefined> {
    return this.#hot.acquire(`idempotency:${key}`, LEASE_MS);
  }

  /** Does a caller of another instance wait for this request? */
  async wait(key: string): Promise<boolean> {
    if (!this.any) return false;
    return this.#hot.get(`waiting:${key}`).then(
      (value) => value !== undefined,
      () => false,
    );
  }
}

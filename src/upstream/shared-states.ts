import type { HotStore } from '../contracts/hot-store.ts';
import type { Environment, Log } from '../contracts/telemetry.ts';
import { isRecord } from '../wire/json.ts';
import type { Breaker } from './breaker.ts';

/** An upstream's shared state is looked at this often at most. */
const REFRESH_MS = 1000;
const PREFIX = 'breaker:';

/**
 * What one instance learnt of an upstream (open, set aside) for the others, through a shared hot store. Best effort: never
 * waited for, and a store that is away changes nothing; each instance still has its own breaker.
 */
export class SharedStates {
  readonly #hot: HotStore;
  readonly #environment: Environment;
  readonly #log: Log;
  readonly #looked = new Map<string, number>();

  constructor(hot: HotStore, environment: Environment, log: Log) {
    this.#hot = hot;
    this.#environment = environment;
    this.#log = log;
  }

  refresh(identity: string, breaker: Breaker, now: number): void {
    if (!this.#hot.shared || now - (this.#looked.get(identity) ?? 0) < REFRESH_MS) return;
    this.#looked.set(identity, now);
    void this.#adopt(identity, breaker);
  }

  publish(identity: string, breaker: Breaker): void {
    if (!this.#hot.shared) return;
    const now = this.#environment.now();
    const until = Math.max(breaker.openUntil, breaker.asideUntil);
    const key = PREFIX + identity;
    const written =
      until > now ? this.#hot.set(key, JSON.stringify({ open: breaker.openUntil, aside: breaker.asideUntil }), until - now) : this.#hot.delete(key);
    written.catch((thrown: unknown) => this.#log.debug({ err: thrown }, 'an upstream state could not be shared'));
  }

  async #adopt(identity: string, breaker: Breaker): Promise<void> {
    try {
      const text = await this.#hot.get(PREFIX + identity);
      const state: unknown = text === undefined ? undefined : JSON.parse(text);
      if (!isRecord(state)) return;
      const now = this.#environment.now();
      if (typeof state.open === 'number' && state.open > now) breaker.openUntil = Math.max(breaker.openUntil, state.open);
      if (typeof state.aside === 'number') breaker.setAside(state.aside);
    } catch (thrown) {
      this.#log.debug({ err: thrown }, 'a shared upstream state could not be read');
    }
  }
}

import type { Exchange } from '../contracts/exchange.ts';
import type { HotStore, Lease } from '../contracts/hot-store.ts';
import type { Environment, Log } from '../contracts/telemetry.ts';
import type { SessionName } from './session-name.ts';
import { busy, TurnQueue } from './turn-queue.ts';

/** Milliseconds between two looks at a lease that another instance holds. */
const FIRST_LOOK = 10;
const LONGEST_LOOK = 100;

export interface SessionLockDeps {
  hot: HotStore;
  log: Log;
  environment: Environment;
}

/**
 * One turn of a session at a time, everywhere. The lease is a courtesy between instances, so that nobody answers from a
 * history that is about to change; what keeps the history linear is the version that cold checks at every commit.
 */
export class SessionLock {
  readonly #deps: SessionLockDeps;
  readonly #queue = new TurnQueue();

  constructor(deps: SessionLockDeps) {
    this.#deps = deps;
  }

  async enter(name: SessionName, exchange: Exchange): Promise<() => void> {
    const { concurrency, lease_ms } = exchange.config.session;
    const leave = await this.#queue.enter(name.key, exchange, concurrency);
    if (!this.#deps.hot.shared) return leave;
    try {
      const lease = await this.#lease(name, exchange, concurrency === 'reject', lease_ms);
      return () => {
        // Not awaited: the store's connection keeps its commands in order, so whoever comes next finds it released.
        lease?.release().catch(() => undefined);
        leave();
      };
    } catch (thrown) {
      leave();
      throw thrown;
    }
  }

  /** Undefined: the hot store is away, and the turn goes on without. */
  async #lease(name: SessionName, exchange: Exchange, reject: boolean, ttlMs: number): Promise<Lease | undefined> {
    for (let pause = FIRST_LOOK; ; pause = Math.min(LONGEST_LOOK, pause * 2)) {
      if (exchange.cancelled) throw exchange.cancelled;
      let lease: Lease | undefined;
      try {
        lease = await this.#deps.hot.acquire(`turn:${name.key}`, ttlMs);
      } catch (thrown) {
        this.#deps.log.debug({ err: thrown }, 'no session lease: the hot store is away');
        return undefined;
      }
      if (lease) {
        if (!exchange.cancelled) return lease;
        lease.release().catch(() => undefined);
        throw exchange.cancelled;
      }
      if (reject) throw busy();
      await this.#pause(exchange, pause * (0.5 + this.#deps.environment.random()));
    }
  }

  #pause(exchange: Exchange, ms: number): Promise<void> {
    return new Promise((resolve) => {
      let forget: (() => void) | undefined;
      const wake = (): void => {
        clearTimeout(timer);
        forget?.();
        resolve();
      };
      const timer = setTimeout(wake, ms);
      // Of an exchange that is cancelled already it wakes at once.
      forget = exchange.onCancel(wake);
    });
  }
}

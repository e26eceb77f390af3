import type { HotStore } from '../contracts/hot-store.ts';
import type { Environment, Log } from '../contracts/telemetry.ts';
import { isRecord } from '../wire/json.ts';
import type { Breaker } from './breaker.ts';

/** An upstream's shared state is looked at this often at most. */
const REFRESH_MS = 500;
/** Whoever has not looked for so long waits for the look, so that no request goes by what an operator has changed long since. */
const IDLE_MS = 2 * REFRESH_MS;
const STATE = 'breaker:';
const ORDER = 'upstream-order:';
/** Until the next one, that is; but no key lives for ever. */
const ORDER_KEPT_MS = 366 * 86_400_000;

/** An operator's last word on an upstream: drained, or reset. `at` only grows, whatever the instances' clocks say; the newest counts. */
interface Order {
  at: number;
  drained: boolean;
}
const NONE: Order = { at: 0, drained: false };

interface Seen {
  lookedAt: number;
  /** Undefined: it was never known. */
  order: Order | undefined;
  /** A look that requests wait for. */
  awaited: Promise<void> | undefined;
}

export interface SharedStatesDeps {
  hot: HotStore;
  environment: Environment;
  log: Log;
  /** A breaker was changed by what others said. */
  adopted(identity: string): void;
}

/**
 * What one instance learnt of an upstream (open, set aside) and what operators told it (drain, reset), for the others, through a
 * shared hot store. Best effort: a store that is away changes nothing; each instance still has its own breaker.
 */
export class SharedStates {
  readonly #deps: SharedStatesDeps;
  readonly #seen = new Map<string, Seen>();

  constructor(deps: SharedStatesDeps) {
    this.#deps = deps;
  }

  /** Looks, when it is time to; a promise: wait for it. */
  refresh(identity: string, breaker: Breaker, now: number): Promise<void> | undefined {
    const seen = this.#of(identity);
    const age = now - seen.lookedAt;
    if (age < REFRESH_MS) return seen.awaited;
    seen.lookedAt = now;
    const looking = this.#look(identity, breaker, seen);
    if (seen.order !== undefined && age < IDLE_MS) return undefined;
    seen.awaited = looking.then(() => {
      seen.awaited = undefined;
    });
    return seen.awaited;
  }

  publish(identity: string, breaker: Breaker): void {
    const { hot, environment, log } = this.#deps;
    const now = environment.now();
    const until = Math.max(breaker.openUntil, breaker.asideUntil);
    const key = STATE + identity;
    const written = until > now ? hot.set(key, JSON.stringify({ open: breaker.openUntil, aside: breaker.asideUntil }), until - now) : hot.delete(key);
    written.catch((thrown: unknown) => log.debug({ err: thrown }, 'an upstream state could not be shared'));
  }

  /** Done here already: for the others. Resolves when they can know it, or when the store is away. */
  async order(identity: string, drained: boolean): Promise<void> {
    const { environment, log } = this.#deps;
    const seen = this.#of(identity);
    const order = { at: Math.max(environment.now(), (seen.order ?? NONE).at + 1), drained };
    seen.order = order;
    try {
      const stored = toOrder(await this.#read(ORDER + identity));
      order.at = Math.max(order.at, (stored ?? NONE).at + 1);
      await this.#write(identity, order);
    } catch (thrown) {
      log.warn({ err: thrown }, 'a drain or reset could not be told to the other instances; they hear of it when the hot store answers again');
    }
  }

  async #look(identity: string, breaker: Breaker, seen: Seen): Promise<void> {
    const mine = seen.order;
    try {
      const [told, state] = await Promise.all([this.#read(ORDER + identity), this.#read(STATE + identity)]);
      // Somebody has spoken here meanwhile: what was read is older.
      if (seen.order !== mine) return;
      const order = toOrder(told) ?? NONE;
      seen.order = order;
      // The store was away when it was said, or has lost it.
      if (mine && order.at < mine.at) {
        seen.order = mine;
        await this.#write(identity, mine);
      } else if (order.drained) breaker.drained = true;
      // At the first look a reset is of before: what this instance has met since is its own.
      else if (mine && (order.at > mine.at || mine.drained)) breaker.reset();
      this.#adopt(breaker, state);
      this.#deps.adopted(identity);
    } catch (thrown) {
      this.#deps.log.debug({ err: thrown }, 'a shared upstream state could not be read');
    }
  }

  #adopt(breaker: Breaker, state: unknown): void {
    if (!isRecord(state)) return;
    const { open, aside } = state;
    if (typeof open === 'number' && open > this.#deps.environment.now()) breaker.openUntil = Math.max(breaker.openUntil, open);
    if (typeof aside === 'number') breaker.setAside(aside);
  }

  async #read(key: string): Promise<unknown> {
    const text = await this.#deps.hot.get(key);
    return text === undefined ? undefined : JSON.parse(text);
  }

  async #write(identity: string, order: Order): Promise<void> {
    await this.#deps.hot.set(ORDER + identity, JSON.stringify(order), ORDER_KEPT_MS);
  }

  #of(identity: string): Seen {
    let seen = this.#seen.get(identity);
    if (seen === undefined) {
      seen = { lookedAt: Number.NEGATIVE_INFINITY, order: undefined, awaited: undefined };
      this.#seen.set(identity, seen);
    }
    return seen;
  }
}

function toOrder(value: unknown): Order | undefined {
  return isRecord(value) && typeof value.at === 'number' && typeof value.drained === 'boolean' ? { at: value.at, drained: value.drained } : undefined;
}

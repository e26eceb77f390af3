import type { ModelRegistry } from '../contracts/config.ts';
import { HermesError } from '../contracts/errors.ts';
import type { Exchange, Trace, UpstreamTarget } from '../contracts/exchange.ts';

/** A call that was never sent, because it found no place or was given up while it waited for one: nothing is to be held against the upstream. */
export class NeverSent extends HermesError {}

/** What is asked of an exchange here. */
export interface Entering extends Pick<Exchange, 'background' | 'onCancel'> {
  config: Pick<Exchange['config'], 'registry'>;
  caller: Pick<NonNullable<Exchange['caller']>, 'service'> | undefined;
  trace: Pick<Trace, 'record'>;
}
interface Bound {
  limit: number;
  queue: number;
}
interface Waiter {
  admit(): void;
  refuse(): void;
}
interface Pool {
  bound: Bound;
  active: number;
  waiting: number;
  /** In the order of their turns. */
  services: Map<string, Set<Waiter>>;
  /** How long a place was held of late. */
  meanMs: number;
}
export type Leave = () => void;

const LONGEST_RETRY_AFTER_S = 60;
/** Weight of the newest call in the mean. */
const NEWEST = 0.2;

/**
 * At most `max_concurrent` calls of an upstream at once; beyond it services take turns, so that a burst of one waits for itself.
 * A full queue refuses whoever has most waiting in it, not whoever comes last.
 */
export class Concurrency {
  readonly #pools = new Map<string, Pool>();

  /** A place, at once where there is one. Rejects with NeverSent. The given function gives it back, once. */
  enter(exchange: Entering, target: Pick<UpstreamTarget, 'identity'>): Leave | Promise<Leave> {
    const bound = boundsOf(exchange.config.registry).get(target.identity);
    const pool = this.#poolOf(target.identity, bound);
    if (pool === undefined) return stay;
    if (pool.waiting === 0 && pool.active < pool.bound.limit) return this.#take(target.identity, pool);
    return this.#wait(exchange, target.identity, pool);
  }

  #poolOf(identity: string, bound: Bound | undefined): Pool | undefined {
    let pool = this.#pools.get(identity);
    if (pool === undefined) {
      if (bound === undefined) return undefined;
      pool = { bound, active: 0, waiting: 0, services: new Map(), meanMs: 1000 };
      this.#pools.set(identity, pool);
    } else if (pool.bound !== bound) {
      // A reload. Whoever waits for a bound that is gone need not wait any more.
      pool.bound = bound ?? { limit: Number.POSITIVE_INFINITY, queue: 0 };
      admitNext(pool);
    }
    return pool;
  }

  #take(identity: string, pool: Pool): Leave {
    pool.active++;
    const from = performance.now();
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      pool.active--;
      pool.meanMs += (performance.now() - from - pool.meanMs) * NEWEST;
      admitNext(pool);
      if (pool.active === 0 && pool.waiting === 0) this.#pools.delete(identity);
    };
  }

  #wait(exchange: Entering, identity: string, pool: Pool): Promise<Leave> {
    const service = exchange.caller?.service ?? '';
    // What runs in the background must not keep anybody waiting.
    if (exchange.background || !makeRoom(pool, service)) return Promise.reject(toFull(pool));
    const from = performance.now();
    return new Promise((resolve, reject) => {
      const line = pool.services.get(service) ?? new Set();
      pool.services.set(service, line);
      const over = (): void => {
        if (!line.delete(waiter)) return;
        if (line.size === 0) pool.services.delete(service);
        pool.waiting--;
        release?.();
        exchange.trace.record('queue', from, performance.now(), { waiting: pool.waiting });
      };
      let release: Leave | undefined;
      const waiter: Waiter = {
        admit: () => {
          over();
          resolve(this.#take(identity, pool));
        },
        refuse: () => {
          over();
          reject(toFull(pool));
        },
      };
      line.add(waiter);
      pool.waiting++;
      release = exchange.onCancel((reason) => {
        over();
        reject(new NeverSent(reason.code, reason.message, { cause: reason }));
      });
    });
  }
}

function stay(): void {}

/** One of each service in turn: the first in line goes, and its service moves to the end. */
function admitNext(pool: Pool): void {
  while (pool.active < pool.bound.limit) {
    const [turn] = pool.services;
    if (turn === undefined) return;
    const [service, line] = turn;
    pool.services.delete(service);
    pool.services.set(service, line);
    const [waiter] = line;
    waiter?.admit();
  }
}

/** May one more of this service wait? In a full queue only in the place of the newest of the longest line. */
function makeRoom(pool: Pool, service: string): boolean {
  if (pool.waiting < pool.bound.queue) return true;
  let longest: Set<Waiter> | undefined;
  for (const line of pool.services.values()) if (line.size > (longest?.size ?? 0)) longest = line;
  // One more of its own would be as long: then it is its own turn to be refused.
  if (longest === undefined || longest.size <= (pool.services.get(service)?.size ?? 0) + 1) return false;
  [...longest].at(-1)?.refuse();
  return true;
}

function toFull({ waiting, bound, meanMs }: Pool): NeverSent {
  const seconds = Math.min(LONGEST_RETRY_AFTER_S, Math.max(1, Math.ceil(((waiting + 1) * meanMs) / bound.limit / 1000)));
  return new NeverSent('overloaded', 'Too many requests wait for this model; try again after the time in retry-after.', {
    headers: { 'retry-after': String(seconds), 'retry-after-ms': String(seconds * 1000) },
  });
}

const known = new WeakMap<Pick<ModelRegistry, 'models'>, ReadonlyMap<string, Bound>>();
/** Of models that share an upstream the strictest bounds hold. */
function boundsOf(registry: Pick<ModelRegistry, 'models'>): ReadonlyMap<string, Bound> {
  let bounds = known.get(registry);
  if (bounds === undefined) {
    const made = new Map<string, Bound>();
    for (const { identity, maxConcurrent, maxQueue } of [...registry.models.values()].flatMap(({ upstreams }) => upstreams)) {
      if (!maxConcurrent) continue;
      const before = made.get(identity);
      const queue = maxQueue ?? Number.POSITIVE_INFINITY;
      made.set(identity, { limit: Math.min(before?.limit ?? maxConcurrent, maxConcurrent), queue: Math.min(before?.queue ?? queue, queue) });
    }
    bounds = made;
    known.set(registry, bounds);
  }
  return bounds;
}

import type { Config } from '../contracts/config.ts';
import type { UpstreamTarget } from '../contracts/exchange.ts';
import type { HotStore } from '../contracts/hot-store.ts';
import type { StateChange, UpstreamState } from '../contracts/rooms.ts';
import type { Environment, Gauge, Log, Metrics } from '../contracts/telemetry.ts';
import { Breaker, type BreakerState, type Permit } from './breaker.ts';
import { type BreakerLimits, DEFAULT_LIMITS, gatherLimits } from './breaker-limits.ts';
import { SharedStates } from './shared-states.ts';

/** A probe that never came back frees its slot this long after the upstream's own limit. */
const LEASE_MARGIN_MS = 5000;
const GAUGE: Record<BreakerState, number> = { closed: 0, half_open: 1, open: 2, set_aside: 3, drained: 4 };

export interface BreakersDeps {
  environment: Environment;
  metrics: Metrics;
  log: Log;
  hot?: HotStore | undefined;
}

interface Entry {
  breaker: Breaker;
  /** As it was last called: the name in logs and metrics. */
  id: string;
  told: BreakerState;
  /** Newest first. */
  changes: StateChange[];
}
/** Kept of each upstream. */
const MOST_CHANGES = 50;

/** One breaker an upstream, keyed by its identity, shared by the models that use it; lives on across reloads. */
export class Breakers {
  readonly #entries = new Map<string, Entry>();
  readonly #environment: Environment;
  readonly #gauge: Gauge;
  readonly #log: Log;
  readonly #shared: SharedStates | undefined;
  readonly #limits = new WeakMap<Config, ReadonlyMap<string, BreakerLimits>>();

  constructor({ environment, metrics, log, hot }: BreakersDeps) {
    this.#environment = environment;
    this.#log = log;
    this.#gauge = metrics.gauge('hermes_upstream_state', 'State of an upstream: 0 closed, 1 half open, 2 open, 3 set aside after a 429, 4 drained.', [
      'upstream',
    ]);
    const adopted = (identity: string): void => {
      const entry = this.#entries.get(identity);
      if (entry) this.#tell(entry, environment.now());
    };
    this.#shared = hot?.shared ? new SharedStates({ hot, environment, log, adopted }) : undefined;
  }

  /** What other instances know of these, when it is time to ask; a promise: wait for it. */
  refresh(targets: readonly UpstreamTarget[]): Promise<unknown> | undefined {
    if (this.#shared === undefined) return undefined;
    const now = this.#environment.now();
    let waits: Promise<void>[] | undefined;
    for (const target of targets) {
      const wait = this.#shared.refresh(target.identity, this.#entry(target).breaker, now);
      if (wait === undefined) continue;
      waits ??= [];
      waits.push(wait);
    }
    return waits && Promise.all(waits);
  }

  available(target: UpstreamTarget, now: number): boolean {
    return this.#entry(target).breaker.available(now);
  }

  of(target: UpstreamTarget): Breaker {
    return this.#entry(target).breaker;
  }

  begin(target: UpstreamTarget, now: number): Permit {
    const entry = this.#entry(target);
    const permit = entry.breaker.begin(now, Math.max(target.timeoutMs, target.firstTokenTimeoutMs) + LEASE_MARGIN_MS);
    if (permit !== 0) this.#tell(entry, now);
    return permit;
  }

  trust(target: UpstreamTarget, permit: Permit): void {
    if (permit === 0) return;
    const entry = this.#entry(target);
    entry.breaker.trust(permit);
    this.#changed(target, entry);
  }

  succeed(target: UpstreamTarget, permit: Permit): void {
    const entry = this.#entry(target);
    entry.breaker.succeed(permit);
    if (entry.told !== 'closed') this.#changed(target, entry);
  }

  fail(target: UpstreamTarget, permit: Permit, config: Config): void {
    const entry = this.#entry(target);
    const { threshold, cooldownMs } = this.#limitsOf(config, target);
    if (entry.breaker.fail(permit, this.#environment.now(), threshold, cooldownMs)) this.#changed(target, entry);
  }

  release(target: UpstreamTarget, permit: Permit): void {
    this.#entry(target).breaker.release(permit);
  }

  setAside(target: UpstreamTarget, permit: Permit, ms: number): void {
    const entry = this.#entry(target);
    entry.breaker.release(permit);
    entry.breaker.setAside(this.#environment.now() + ms);
    this.#changed(target, entry);
  }

  /** By name; false when no such upstream is known. At once here; resolves when other instances can know it. */
  drain(id: string, config: Config | undefined): Promise<boolean> {
    return this.#order(id, config, true);
  }

  reset(id: string, config: Config | undefined): Promise<boolean> {
    return this.#order(id, config, false);
  }

  states(config: Config): UpstreamState[] {
    const now = this.#environment.now();
    return config.registry.upstreams.map((target) => {
      const entry = this.#entry(target);
      this.#tell(entry, now);
      const { breaker } = entry;
      const state = stateOf(target, breaker, now);
      const until = state === 'open' ? breaker.openUntil : state === 'set_aside' ? breaker.asideUntil : 0;
      const weights = [...config.registry.models.values()].flatMap(({ id: model, upstreams }) => {
        const own = upstreams.find(({ identity }) => identity === target.identity);
        return own ? [{ model, weight: own.weight }] : [];
      });
      return {
        id: target.id,
        identity: target.identity,
        provider: target.provider,
        model_name: target.modelName,
        state,
        consecutive_failures: breaker.failures,
        ...(until > 0 ? { until: new Date(until).toISOString() } : {}),
        models: weights.map(({ model }) => model),
        weights,
        changes: entry.changes,
      };
    });
  }

  #limitsOf(config: Config, target: UpstreamTarget): BreakerLimits {
    let limits = this.#limits.get(config);
    if (limits === undefined) {
      limits = gatherLimits(config);
      this.#limits.set(config, limits);
    }
    return limits.get(target.identity) ?? DEFAULT_LIMITS;
  }

  #entry(target: UpstreamTarget): Entry {
    let entry = this.#entries.get(target.identity);
    if (entry === undefined) {
      entry = { breaker: new Breaker(), id: target.id, told: 'closed', changes: [] };
      this.#entries.set(target.identity, entry);
      this.#gauge.set({ upstream: target.id }, GAUGE.closed);
    }
    return entry;
  }

  async #order(id: string, config: Config | undefined, drained: boolean): Promise<boolean> {
    const targets = new Map([...this.#entries].filter(([, entry]) => entry.id === id));
    for (const { upstreams } of config?.registry.models.values() ?? []) {
      for (const target of upstreams) if (target.id === id) targets.set(target.identity, this.#entry(target));
    }
    const told = [...targets].map(([identity, { breaker }]) => {
      if (drained) breaker.drained = true;
      else {
        breaker.reset();
        // Before the word of it: whoever hears that must not find the old state.
        this.#shared?.publish(identity, breaker);
      }
      return this.#shared?.order(identity, drained);
    });
    for (const entry of targets.values()) this.#tell(entry, this.#environment.now());
    await Promise.all(told);
    return targets.size > 0;
  }

  #changed(target: UpstreamTarget, entry: Entry): void {
    this.#tell(entry, this.#environment.now());
    this.#shared?.publish(target.identity, entry.breaker);
  }

  #tell(entry: Entry, now: number): void {
    const state = entry.breaker.state(now);
    if (state === entry.told) return;
    const change = { at: new Date(now).toISOString(), from: entry.told, to: state, consecutive_failures: entry.breaker.failures };
    entry.changes = [change, ...entry.changes].slice(0, MOST_CHANGES);
    entry.told = state;
    this.#gauge.set({ upstream: entry.id }, GAUGE[state]);
    const level = state === 'open' || state === 'set_aside' ? 'warn' : 'info';
    this.#log[level]({ upstream: entry.id, state, consecutive_failures: entry.breaker.failures }, 'upstream changed its state');
  }
}

export function stateOf(target: UpstreamTarget, breaker: Breaker, now: number): UpstreamState['state'] {
  return isKeyMissing(target) ? 'key_missing' : breaker.state(now);
}

export function isKeyMissing(target: UpstreamTarget): boolean {
  return target.apiKeyEnv !== undefined && !target.apiKey;
}

import type { ModelEntry } from '../contracts/config.ts';
import type { Exchange, UpstreamTarget } from '../contracts/exchange.ts';
import type { Next } from '../contracts/plugin.ts';
import { isKeyMissing } from './breakers.ts';
import { missingAbility } from './capabilities.ts';
import { hedge, isUrgent } from './hedge.ts';
import { pause } from './pause.ts';
import { type Places, placeKey } from './places.ts';
import type { PassedOver, RequestLog } from './request-log.ts';
import { backoffMs, DEFAULT_ASIDE_MS } from './retry-policy.ts';
import { type Failed, type Served, type TryDeps, UpstreamTry } from './upstream-try.ts';

export interface RunDeps extends TryDeps {
  places: Places;
}

/** All tries of one model call on one model. */
export class ModelRun {
  readonly #deps: RunDeps;
  readonly #exchange: Exchange;
  readonly #next: Next;
  readonly #model: ModelEntry;
  readonly #log: RequestLog;
  readonly #complete: boolean;
  /** A shadow is asked once: its repeats would cost money and open the breakers of live traffic. */
  readonly #maxAttempts: number;
  #tries = 0;
  /** Not again in this request. */
  #out: Set<string> | undefined;
  /** When one that has failed may be asked again. */
  #readyAt: Map<string, number> | undefined;

  constructor(deps: RunDeps, exchange: Exchange, next: Next, model: ModelEntry, log: RequestLog) {
    this.#deps = deps;
    this.#exchange = exchange;
    this.#next = next;
    this.#model = model;
    this.#log = log;
    this.#maxAttempts = exchange.background ? 1 : model.failover.max_attempts;
    this.#complete = (exchange.wants.commit ?? model.failover.commit) === 'complete';
  }

  /** An answer; a failure that the client is to see as it is; or undefined: nothing left on this model. */
  async run(): Promise<Served | Failed | undefined> {
    const refreshed = this.#deps.breakers.refresh(this.#model.upstreams);
    if (refreshed) await refreshed;
    while (this.#tries < this.#maxAttempts) {
      const target = this.#pick();
      if (target === undefined) {
        if (await this.#waited()) continue;
        break;
      }
      const result = await this.#try(target);
      if ('answer' in result) {
        this.#remember(result.attempt.target);
        result.answer.facts.attempts = this.#exchange.callsBegun - this.#log.earlierCalls;
        return result;
      }
      if (result.verdict.next === 'stop' || this.#exchange.cancelled) return result;
    }
    this.#notePassedOver();
    return undefined;
  }

  #try(target: UpstreamTarget): Promise<Served | Failed> {
    const { hedge_ms } = this.#model.failover;
    const first = this.#begin(target);
    if (hedge_ms > 0 && isUrgent(this.#exchange)) {
      const second = (): UpstreamTry | undefined => {
        const other = this.#tries < this.#maxAttempts ? this.#untried(target) : undefined;
        return other && this.#begin(other);
      };
      return hedge(this.#exchange, first, second, hedge_ms, (attempt) => this.#settle(attempt));
    }
    return this.#settle(first);
  }

  #begin(target: UpstreamTarget): UpstreamTry {
    this.#tries++;
    return new UpstreamTry(this.#deps, this.#exchange, this.#model, target, this.#tries);
  }

  async #settle(attempt: UpstreamTry): Promise<Served | Failed> {
    const result = await attempt.run(this.#next, this.#complete);
    if ('error' in result && result.error.code !== 'superseded') this.#note(result);
    return result;
  }

  #note(failure: Failed): void {
    this.#log.add(failure);
    const { target, verdict } = failure;
    const wait = verdict.retryAfterMs ?? (verdict.reason === 'rate_limited' ? DEFAULT_ASIDE_MS : undefined);
    if (verdict.next !== 'again' || (wait ?? 0) > this.#model.failover.max_retry_after_ms) {
      this.#out ??= new Set();
      this.#out.add(target.identity);
      return;
    }
    this.#readyAt ??= new Map();
    const { environment } = this.#deps;
    this.#readyAt.set(target.identity, environment.now() + (wait ?? backoffMs(this.#readyAt.size, environment.random())));
  }

  /** One that has not failed yet, at once; else one whose time has come again. */
  #pick(): UpstreamTarget | undefined {
    const now = this.#deps.environment.now();
    const candidates = this.#model.upstreams.filter((target) => this.#canServe(target) && this.#deps.breakers.available(target, now));
    const fresh = this.#readyAt ? candidates.filter(({ identity }) => !this.#readyAt?.has(identity)) : candidates;
    const ready = fresh.length > 0 ? fresh : candidates.filter(({ identity }) => (this.#readyAt?.get(identity) ?? 0) <= now);
    return this.#place(ready) ?? this.#deps.balancer.pick(this.#model.id, this.#model.failover.strategy, ready, now);
  }

  #untried(but: UpstreamTarget): UpstreamTarget | undefined {
    const now = this.#deps.environment.now();
    const others = this.#model.upstreams.filter(
      (target) =>
        target.identity !== but.identity && !this.#readyAt?.has(target.identity) && this.#canServe(target) && this.#deps.breakers.available(target, now),
    );
    return this.#deps.balancer.pick(this.#model.id, this.#model.failover.strategy, others, now);
  }

  /** Apart from its breaker. */
  #canServe(target: UpstreamTarget): boolean {
    return (
      target.weight > 0 &&
      !isKeyMissing(target) &&
      !this.#out?.has(target.identity) &&
      this.#log.isLargeEnough(target) &&
      missingAbility(target, this.#exchange.request) === undefined
    );
  }

  /** Waits for the upstream that is ready first, when one will be, in time; false: there is none, or the client has left. */
  async #waited(): Promise<boolean> {
    const now = this.#deps.environment.now();
    let wait = Number.POSITIVE_INFINITY;
    for (const target of this.#model.upstreams) {
      if (!this.#canServe(target)) continue;
      const breaker = this.#deps.breakers.of(target);
      const until = Math.max(breaker.asideUntil, this.#readyAt?.get(target.identity) ?? 0);
      if (breaker.available(Math.max(until, now))) wait = Math.min(wait, Math.max(0, until - now));
    }
    if (wait > this.#model.failover.max_retry_after_ms || wait >= this.#exchange.deadline - performance.now()) return false;
    return pause(this.#exchange, wait);
  }

  #notePassedOver(): void {
    const met = new Set(this.#log.failed.map(({ target }) => target.identity));
    for (const target of this.#model.upstreams) {
      const reason = target.weight > 0 && !met.has(target.identity) ? this.#whyNot(target) : undefined;
      if (reason) this.#log.passed.push({ model: this.#model.id, upstream: target.id, ...reason });
    }
  }

  /** Undefined: only the number of tries stood in its way. */
  #whyNot(target: UpstreamTarget): Pick<PassedOver, 'reason' | 'missing' | 'waitMs'> | undefined {
    if (isKeyMissing(target)) return { reason: 'key_missing' };
    const missing = missingAbility(target, this.#exchange.request);
    if (missing) return { reason: 'unable', missing };
    if (!this.#log.isLargeEnough(target)) return { reason: 'context_overflow' };
    const now = this.#deps.environment.now();
    const breaker = this.#deps.breakers.of(target);
    if (breaker.available(now)) return undefined;
    const state = breaker.state(now);
    if (state === 'set_aside') return { reason: 'rate_limited', waitMs: breaker.asideUntil - now };
    return { reason: 'open', waitMs: state === 'open' ? breaker.openUntil - now : undefined };
  }

  #place(candidates: readonly UpstreamTarget[]): UpstreamTarget | undefined {
    const key = this.#placeKey();
    const identity = key === undefined ? undefined : this.#deps.places.get(key);
    return identity === undefined ? undefined : candidates.find((target) => target.identity === identity);
  }

  #remember(target: UpstreamTarget): void {
    const key = this.#placeKey();
    if (key !== undefined) this.#deps.places.set(key, target.identity);
  }

  #placeKey(): string | undefined {
    if (this.#model.failover.affinity !== 'session') return undefined;
    const { session, ask, caller } = this.#exchange;
    const id = session?.id ?? ask.sessionId;
    return id === undefined ? undefined : placeKey(this.#model.id, session?.project ?? caller?.project ?? '', id);
  }
}

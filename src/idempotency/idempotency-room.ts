import type { ColdStore } from '../contracts/cold-store.ts';
import type { Config } from '../contracts/config.ts';
import type { HermesError } from '../contracts/errors.ts';
import type { Answer, Exchange } from '../contracts/exchange.ts';
import type { HotStore } from '../contracts/hot-store.ts';
import { idReused } from '../contracts/id-reused.ts';
import type { Next } from '../contracts/plugin.ts';
import type { IdempotencyRoom } from '../contracts/rooms.ts';
import type { Environment, Log, Metrics } from '../contracts/telemetry.ts';
import { ColdRunLog } from './cold-run-log.ts';
import { type Keeper, KeptRun } from './kept-run.ts';
import { OtherInstances } from './other-instances.ts';
import type { Outcome } from './outcome.ts';
import { Outcomes } from './outcomes.ts';
import { ownerOf, toFingerprint, toRecordKey } from './record-key.ts';
import { RepeatNames } from './repeat-names.ts';
import { isSdkRepeat, SdkRepeats } from './sdk-repeats.ts';

export interface IdempotencyDeps {
  hot: HotStore;
  cold: ColdStore;
  log: Log;
  metrics: Metrics;
  environment: Environment;
}

/** How long after its end an answer may still be on its way before it counts as arrived. */
const ARRIVAL_MS = 2000;

export function createIdempotencyRoom(deps: IdempotencyDeps): IdempotencyRoom {
  return new Idempotency(deps);
}

class Idempotency implements IdempotencyRoom, Keeper {
  readonly #deps: IdempotencyDeps;
  readonly #outcomes: Outcomes;
  readonly #others: OtherInstances;
  readonly #names: RepeatNames;
  readonly #repeats = new SdkRepeats();
  /** What runs under an id that a caller may name. */
  readonly #running = new Map<string, KeptRun>();
  readonly #replays;

  constructor(deps: IdempotencyDeps) {
    this.#deps = deps;
    this.#outcomes = new Outcomes(deps);
    this.#others = new OtherInstances(deps.hot, this.#outcomes, deps.log);
    this.#names = new RepeatNames(deps);
    this.#replays = deps.metrics.counter('hermes_idempotent_replays_total', 'Answers that were given again instead of being made anew.');
  }

  once(exchange: Exchange, next: Next): Promise<Answer> | Answer {
    if (exchange.background) return next();
    this.#outcomes.limit(exchange.config.idempotency.max_bytes);
    const { requestId } = exchange.ask;
    if (requestId !== undefined) return this.#keyed(exchange, next, requestId, toLazyFingerprint(exchange));
    if (isSdkRepeat(exchange)) return this.#repeated(exchange, next, toLazyFingerprint(exchange));
    return this.#unkeyed(exchange, next, toLazyFingerprint(exchange));
  }

  #keyed(exchange: Exchange, next: Next, id: string, fingerprint: () => string): Promise<Answer> | Answer {
    const key = toRecordKey(ownerOf(exchange), id);
    const running = this.#running.get(key);
    if (running) {
      if (running.fingerprint !== fingerprint()) throw idReused();
      return running.join(exchange);
    }
    const ended = this.#outcomes.get(key);
    if (ended) return this.#replay(exchange, ended, fingerprint());
    const run = new KeptRun(exchange, { id, keyed: true, fingerprint }, this);
    this.#running.set(key, run);
    run.start(exchange, next);
    return run.join(exchange);
  }

  /** An ordinary request: only its SDK can ask for it again while it runs. */
  #unkeyed(exchange: Exchange, next: Next, fingerprint: () => string): Promise<Answer> {
    const run = new KeptRun(exchange, { id: exchange.id, keyed: false, fingerprint }, this);
    this.#repeats.add(run);
    run.start(exchange, next);
    return run.join(exchange);
  }

  async #repeated(exchange: Exchange, next: Next, fingerprint: () => string): Promise<Answer> {
    const known = this.#repeats.find(exchange, fingerprint(), this.#deps.environment.now());
    if (known instanceof KeptRun) return known.join(exchange);
    if (known) return this.#replay(exchange, known.outcome, known.fingerprint);
    const id = await this.#names.find(toRecordKey(ownerOf(exchange), fingerprint()), mayChange(exchange.config));
    return id === undefined ? this.#unkeyed(exchange, next, fingerprint) : this.#keyed(exchange, next, id, fingerprint);
  }

  #replay(exchange: Exchange, outcome: Outcome, fingerprint: string): Answer {
    if (outcome.fingerprint !== fingerprint) throw idReused();
    this.#replays.inc({});
    exchange.answer = outcome.again();
    return exchange.answer as Answer;
  }

  async find(run: KeptRun): Promise<Outcome | undefined> {
    const lasting = mayChange(run.config) ? this.#fromCold(run.key) : undefined;
    let outcome: Outcome | undefined;
    if (this.#others.any) {
      const given = {
        get up() {
          return run.over;
        },
      };
      const taken = await this.#others.take(run.key, run.fingerprint, given);
      outcome = taken.outcome;
      run.lease = taken.lease;
      if (run.over) this.#release(run);
    }
    outcome ??= await lasting;
    if (outcome === undefined) return undefined;
    if (outcome.fingerprint !== run.fingerprint) throw idReused();
    this.#replays.inc({});
    return outcome;
  }

  async offered(run: KeptRun): Promise<void> {
    if (run.keyed) return;
    this.#running.set(run.key, run);
    if (!this.#others.any) return;
    run.named = true;
    const lease = this.#others.lease(run.key).catch(() => undefined);
    await this.#names.share(toRecordKey(run.owner, run.fingerprint), run.id, run.config.idempotency.sdk_retry_window_seconds);
    run.lease = await lease;
    if (run.over) this.#release(run);
  }

  awaitedElsewhere(run: KeptRun): Promise<boolean> {
    return this.#others.wait(run.key);
  }

  createLog(run: KeptRun): ColdRunLog {
    const { idempotency } = run.config;
    return new ColdRunLog(this.#deps.cold, run.key, this.#deps.environment.now() + idempotency.ttl_seconds * 1000, async () => {
      if (run.keyed) return;
      run.named = true;
      await this.#names.keep(toRecordKey(run.owner, run.fingerprint), run.id, idempotency.sdk_retry_window_seconds);
    });
  }

  over(run: KeptRun, error: HermesError | undefined): Promise<void> | undefined {
    this.#repeats.delete(run);
    const kept = error === undefined && run.succeeded && (run.begun || (run.keyed && !run.degraded));
    const outcome = kept ? run.outcome(this.#deps.environment.now() + run.config.idempotency.ttl_seconds * 1000) : undefined;
    const keeping = outcome ? this.#outcomes.keep(run.key, outcome, run.begun) : undefined;
    if (run.keyed || run.named || run.offered) this.#running.delete(run.key);
    if (run.named) setTimeout(() => this.#arrived(run), ARRIVAL_MS).unref();
    if (run.missed) this.undelivered(run);
    if (run.lease === undefined) return run.begun ? keeping : undefined;
    // Whoever waits for the name finds the outcome when it gets it.
    const released = Promise.resolve(keeping).then(() => this.#release(run));
    return run.begun ? released : undefined;
  }

  undelivered(run: KeptRun): void {
    if (run.keyed || !run.succeeded) return;
    const { sdk_retry_window_seconds, max_bytes } = run.config.idempotency;
    const now = this.#deps.environment.now();
    const until = now + sdk_retry_window_seconds * 1000;
    const outcome = run.outcome(until);
    if (outcome === undefined) return;
    const { owner, session, length, fingerprint } = run;
    this.#repeats.keep({ owner, session, length, fingerprint, outcome, until }, now, max_bytes / 4);
  }

  #arrived(run: KeptRun): void {
    if (!run.missed) void this.#names.forget(toRecordKey(run.owner, run.fingerprint));
  }

  #release(run: KeptRun): void {
    run.lease?.release().catch((err) => this.#deps.log.debug({ err }, 'a lease was not given back; it ends by itself'));
    run.lease = undefined;
  }

  async #fromCold(key: string): Promise<Outcome | undefined> {
    try {
      return await this.#outcomes.fromCold(key);
    } catch (err) {
      this.#deps.log.warn({ err }, 'stored outcomes could not be read');
      return undefined;
    }
  }
}

/** Hashed once, and only when asked for. */
function toLazyFingerprint({ request, ask }: Exchange): () => string {
  let fingerprint: string | undefined;
  return () => {
    fingerprint ??= toFingerprint(request, ask);
    return fingerprint;
  };
}

/** Are there tools whose doings must outlive a restart? */
function mayChange(config: Config): boolean {
  return config.tools.some((tool) => tool.side_effects) || config.tool_sources.some((source) => source.side_effects !== false);
}

import type { ModelEntry } from '../contracts/config.ts';
import { HermesError, toHermesError } from '../contracts/errors.ts';
import type { Answer, Exchange, UpstreamTarget } from '../contracts/exchange.ts';
import type { Next } from '../contracts/plugin.ts';
import type { OpenAttempt } from '../contracts/rooms.ts';
import type { Outcome } from '../contracts/stream.ts';
import type { Environment } from '../contracts/telemetry.ts';
import type { Balancer } from './balancer.ts';
import type { Permit } from './breaker.ts';
import type { Breakers } from './breakers.ts';
import type { HeldBytes } from './held-bytes.ts';
import { holdBack, holdWhole } from './hold-back.ts';
import { DEFAULT_ASIDE_MS, judge, LONGEST_ASIDE_MS, type Verdict } from './retry-policy.ts';

/** What all tries share. */
export interface TryDeps {
  breakers: Breakers;
  balancer: Balancer;
  environment: Environment;
  held: HeldBytes;
}
export interface Served {
  answer: Answer;
  attempt: UpstreamTry;
}
export interface Failed {
  error: HermesError;
  verdict: Verdict;
  target: UpstreamTarget;
  model: string;
  /** What a broken stream had brought. */
  content: string | null;
}

/** One call of one upstream in a fork of its own; holds a breaker's permit and gives it back however the call ends. */
export class UpstreamTry implements OpenAttempt {
  readonly target: UpstreamTarget;
  readonly model: ModelEntry;
  /** performance.now() */
  readonly begunAt = performance.now();
  readonly #deps: TryDeps;
  readonly #fork: Exchange;
  readonly #permit: Permit;
  readonly #startedAt: number;
  #settled = false;
  #answering = false;
  #discarded: HermesError | undefined;
  #answer: Answer | undefined;

  constructor(deps: TryDeps, exchange: Exchange, model: ModelEntry, target: UpstreamTarget, number: number) {
    this.#deps = deps;
    this.target = target;
    this.model = model;
    this.#startedAt = deps.environment.now();
    this.#permit = deps.breakers.begin(target, this.#startedAt);
    deps.balancer.latency(model.id, target).begin();
    this.#fork = exchange.fork({ attempt: { number, model: model.id, upstream: target } });
  }

  async run(next: Next, complete: boolean): Promise<Served | Failed> {
    try {
      const answer = await next(this.#fork);
      this.#answer = answer;
      if (this.#discarded) return await this.#drop(answer, this.#discarded);
      if (answer.error) return this.#fail(answer.error, null);
      if (answer.stream === undefined) {
        this.#succeed();
        return { answer, attempt: this };
      }
      const most = this.#fork.config.server.max_event_bytes;
      const held = await (complete ? holdWhole(answer.stream, most, this.#deps.held) : holdBack(answer.stream, most));
      if ('error' in held) return this.#fail(held.error, held.content);
      answer.stream = held.stream;
      if (this.#discarded) return await this.#drop(answer, this.#discarded);
      if (held.ended) this.#succeed();
      else this.#trust();
      return { answer, attempt: this };
    } catch (thrown) {
      return this.#fail(toHermesError(thrown), null);
    }
  }

  /** Its stream was handed out and is still running. */
  get open(): boolean {
    return !this.#settled;
  }

  /** How the stream that was handed out ended. */
  end(outcome: Outcome): void {
    if (outcome.status === 'complete') this.#succeed();
    else if (outcome.status === 'aborted' || outcome.error === undefined) this.#release();
    else this.#mark(outcome.error, judge(outcome.error));
  }

  /** Another try was faster: stops this one at once, whatever it does. */
  discard(): void {
    const reason = new HermesError('superseded', 'Another attempt answered first.');
    this.#discarded = reason;
    this.#fork.cancel(reason);
    void this.#answer?.stream?.cancel(reason);
    this.#release();
  }

  async #drop(answer: Answer, reason: HermesError): Promise<Failed> {
    await answer.stream?.cancel(reason);
    return this.#fail(reason, null);
  }

  #fail(error: HermesError, content: string | null): Failed {
    const verdict = judge(error);
    this.#mark(error, verdict);
    return { error, verdict, target: this.target, model: this.model.id, content };
  }

  #mark(error: HermesError, { mark, retryAfterMs }: Verdict): void {
    if (this.#settled) return;
    const { breakers, balancer, environment } = this.#deps;
    const now = environment.now();
    // A deadline that passes in the middle of a healthy stream says nothing about the upstream.
    const late = this.#answering && error.code === 'deadline_exceeded';
    if (mark === 'none' || late) {
      this.#release();
      return;
    }
    this.#settle();
    balancer.latency(this.model.id, this.target).observeFailure(now - this.#startedAt, now);
    if (mark === 'failure') breakers.fail(this.target, this.#permit, this.#fork.config);
    else breakers.setAside(this.target, this.#permit, Math.min(retryAfterMs ?? DEFAULT_ASIDE_MS, LONGEST_ASIDE_MS));
  }

  #trust(): void {
    this.#answered();
    this.#deps.breakers.trust(this.target, this.#permit);
  }

  #succeed(): void {
    if (this.#settled) return;
    this.#answered();
    this.#settle();
    this.#deps.breakers.succeed(this.target, this.#permit);
  }

  #answered(): void {
    if (this.#answering) return;
    this.#answering = true;
    const now = this.#deps.environment.now();
    this.#deps.balancer.latency(this.model.id, this.target).observe(now - this.#startedAt, now);
  }

  #release(): void {
    if (this.#settled) return;
    this.#settle();
    this.#deps.breakers.release(this.target, this.#permit);
  }

  #settle(): void {
    this.#settled = true;
    this.#deps.balancer.latency(this.model.id, this.target).end();
  }
}

import type { Config } from '../contracts/config.ts';
import { type HermesError, toHermesError } from '../contracts/errors.ts';
import type { Answer, AnswerInit, Exchange, Facts, Run, RunLog } from '../contracts/exchange.ts';
import type { Lease } from '../contracts/hot-store.ts';
import type { Next } from '../contracts/plugin.ts';
import { parseJsonBytes } from '../wire/json.ts';
import type { Rostered } from '../wire/roster.ts';
import { type Shared, share } from '../wire/share.ts';
import { HangUp } from './hang-up.ts';
import { Outcome, toBodyBytes, toStreamBytes } from './outcome.ts';
import { askedSession, ownerOf, toRecordKey } from './record-key.ts';

/** What a run needs of the room that keeps it. */
export interface Keeper {
  /** Looks beyond this process; an outcome found there is the answer. */
  find(run: KeptRun): Promise<Outcome | undefined> | undefined;
  /** Tools with side effects are on offer: other instances must be able to find the run. */
  offered(run: KeptRun): Promise<void>;
  /** A caller of another instance waits for it. */
  awaitedElsewhere(run: KeptRun): Promise<boolean>;
  /** It is over; resolves when what must outlive a crash does. */
  over(run: KeptRun, error: HermesError | undefined): Promise<void> | undefined;
  /** Its answer did not reach a caller whole. */
  undelivered(run: KeptRun): void;
  createLog(run: KeptRun): RunLog;
}
export interface RunInit {
  id: string;
  /** The caller gave the id, or it was recognised: the outcome is stored, and an earlier try may have left a log. */
  keyed: boolean;
  fingerprint: () => string;
}
/** Most that one running answer holds for joiners, as a part of the limit for all outcomes. */
const RUNNING_SHARE = 1 / 4;

/**
 * One request that runs, in a fork of its own; every caller, the first one too, only joins. Ends when the fork's answer is
 * over, or when the last caller has left and nothing forbids to stop.
 */
export class KeptRun implements Run, Rostered {
  /** Among the runs that only their SDK can ask for again. */
  seat = -1;
  /** performance.now() */
  readonly begunAt = performance.now();
  readonly id: string;
  readonly owner: string;
  readonly session: string | undefined;
  /** Bytes of the body as it came. */
  readonly length: number;
  readonly keyed: boolean;
  /** The generation that it began with. */
  readonly config: Config;
  /** Held while it runs when instances share a hot store. */
  lease: Lease | undefined;
  /** Its answer has not reached the caller that wanted it last. */
  missed = false;
  /** A repeat would find it in a store. */
  named = false;
  readonly #fingerprint: () => string;
  readonly #keeper: Keeper;
  readonly #hangUp: HangUp;
  #key: string | undefined;
  #log: RunLog | undefined;
  #fork: Exchange | undefined;
  #head: Promise<Answer | Outcome> | undefined;
  #answer: Answer | undefined;
  #shared: Shared | undefined;
  #body: Buffer | undefined;
  #handedOut = false;
  #driven = false;
  #callers = 0;
  #over = false;
  #failed = false;

  constructor(exchange: Exchange, init: RunInit, keeper: Keeper) {
    this.id = init.id;
    this.keyed = init.keyed;
    this.owner = ownerOf(exchange);
    this.session = askedSession(exchange.ask);
    this.length = exchange.inbound.bytes?.length ?? 0;
    this.config = exchange.config;
    this.#fingerprint = init.fingerprint;
    this.#keeper = keeper;
    this.#hangUp = new HangUp(exchange.config.idempotency.rejoin_seconds * 1000, {
      stop: (reason) => this.#stop(reason),
      drive: () => void this.#drive(),
      awaitedElsewhere: () => keeper.awaitedElsewhere(this),
    });
  }

  get fingerprint(): string {
    return this.#fingerprint();
  }
  get key(): string {
    this.#key ??= toRecordKey(this.owner, this.id);
    return this.#key;
  }
  get log(): RunLog {
    this.#log ??= this.#keeper.createLog(this);
    return this.#log;
  }
  get resumable(): boolean {
    return this.keyed;
  }
  get mark(): string | undefined {
    return this.keyed || this.named ? this.key : undefined;
  }
  get over(): boolean {
    return this.#over;
  }
  get offered(): boolean {
    return this.#hangUp.offered;
  }
  /** A call with side effects has begun. */
  get begun(): boolean {
    return this.#hangUp.begun;
  }
  get succeeded(): boolean {
    return this.#answer !== undefined && this.#answer.error === undefined && this.#answer.status < 400;
  }
  /** The answer was second choice. */
  get degraded(): boolean {
    return this.#answer?.facts.degraded === true;
  }

  async offer(): Promise<void> {
    this.#hangUp.offered = true;
    await this.#keeper.offered(this);
  }

  begin(): Promise<boolean> {
    return this.#hangUp.begin(this.#callers > 0);
  }

  start(exchange: Exchange, next: Next): void {
    this.#fork = exchange.fork({ detached: true });
    this.#fork.run = this;
    this.#head = this.#run(this.#fork, next);
    // Callers that left hear nothing of it; those who stay handle it themselves.
    this.#head.catch(() => undefined);
  }

  /** Gives this caller the answer, from its beginning. Rejects when the caller is cancelled first: then it has left. */
  join(exchange: Exchange): Promise<Answer> {
    this.#callers++;
    this.missed = false;
    this.#hangUp.joined();
    return new Promise((resolve, reject) => {
      let stream: AnswerInit['stream'];
      let left = false;
      exchange.onCancel((reason) => {
        if (left) return;
        left = true;
        stream?.cancel(reason);
        this.#tellDecided(exchange);
        reject(reason);
        this.#leave(reason);
      });
      const handOut = (source: Answer | Outcome): void => {
        if (left) return;
        try {
          const init = this.#toAnswer(source);
          stream = init.stream;
          this.#tellDecided(exchange);
          exchange.answer = init;
          resolve(exchange.answer as Answer);
        } catch (thrown) {
          left = true;
          reject(thrown);
          this.#leave(toHermesError(thrown));
        }
      };
      this.#head?.then(handOut, reject);
    });
  }

  /** What was decided inside is known outside, too, for headers, metrics and the log. */
  #tellDecided(exchange: Exchange): void {
    exchange.route ??= this.#fork?.route;
    exchange.session ??= this.#fork?.session;
  }

  /** What can be given again; undefined while it runs, and when it was broken off. */
  outcome(expiresAt: number): Outcome | undefined {
    const answer = this.#answer;
    if (!this.#over || this.#failed || answer === undefined) return undefined;
    const stream = this.#shared;
    if (stream && !stream.whole) return undefined;
    const bytes = stream ? toStreamBytes(stream.batches) : (this.#body ?? toBodyBytes(answer));
    const { status, headers } = answer;
    const facts: Facts = { ...answer.facts };
    // A replay is not routed: it says where the answer came from.
    const rule = facts.route ?? this.#fork?.route?.rule;
    if (rule !== undefined) facts.route = rule;
    return new Outcome({
      fingerprint: this.fingerprint,
      status,
      headers: { ...headers },
      kind: stream ? 'stream' : 'body',
      bytes,
      facts,
      expiresAt,
    });
  }

  async #run(fork: Exchange, next: Next): Promise<Answer | Outcome> {
    try {
      const found = this.keyed ? await this.#keeper.find(this) : undefined;
      if (found) {
        this.#over = true;
        await this.#keeper.over(this, undefined);
        return found;
      }
      if (fork.cancelled) throw fork.cancelled;
      return await this.#begin(await next(fork));
    } catch (thrown) {
      const error = toHermesError(thrown);
      await this.#end(error);
      throw error;
    }
  }

  async #begin(answer: Answer): Promise<Answer> {
    this.#answer = answer;
    answer.facts.requestId ??= this.id;
    if (this.#over) {
      await answer.stream?.cancel(this.#fork?.cancelled);
      return answer;
    }
    if (answer.stream) {
      this.#shared = share(answer.stream, { maxBytes: this.config.idempotency.max_bytes * RUNNING_SHARE, over: (error) => this.#end(error) });
      if (this.#callers === 0) void this.#drive();
      return answer;
    }
    // Taken before anybody gets the answer, which the first caller's outer steps may change.
    if (!answer.error && (this.#callers > 1 || this.keyed || this.begun)) this.#body = toBodyBytes(answer);
    await this.#end(answer.error);
    return answer;
  }

  #toAnswer(source: Answer | Outcome): Answer | AnswerInit {
    if (source instanceof Outcome) return source.again();
    const first = !this.#handedOut;
    this.#handedOut = true;
    const { status, headers, holdFinish, error, facts } = source;
    if (this.#shared) return { status, headers: { ...headers }, holdFinish, error, facts, stream: this.#shared.open() };
    if (first) return source;
    const head = { status, headers: { ...headers }, holdFinish, error, facts: { ...facts } };
    return this.#body ? { ...head, body: parseJsonBytes(this.#body) } : head;
  }

  #leave(reason: HermesError): void {
    this.#callers--;
    this.missed = this.#callers === 0 || this.#over;
    if (this.#over) this.#keeper.undelivered(this);
    else if (this.#callers === 0) this.#hangUp.left(reason);
  }

  /** Nobody waits: everything inside stops at once. */
  #stop(reason: HermesError): void {
    if (this.#over) return;
    this.#fork?.cancel(reason);
    void this.#answer?.stream?.cancel(reason);
    void this.#end(reason);
  }

  /** Nobody reads, but it goes on. */
  async #drive(): Promise<void> {
    if (this.#shared === undefined || this.#over || this.#driven) return;
    this.#driven = true;
    try {
      // Not from the beginning, which a long answer has let go of.
      const reader = this.#shared.rest();
      while ((await reader.read()) !== null);
    } catch {
      // Its end is told to whoever keeps the run.
    }
  }

  #end(error: HermesError | undefined): Promise<void> | undefined {
    if (this.#over) return undefined;
    this.#over = true;
    this.#failed = error !== undefined;
    this.#hangUp.end();
    return this.#keeper.over(this, error);
  }
}

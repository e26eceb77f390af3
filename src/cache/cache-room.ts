import type { Config } from '../contracts/config.ts';
import type { Answer, AnswerInit, Exchange, SavedAnswer } from '../contracts/exchange.ts';
import type { HotStore } from '../contracts/hot-store.ts';
import type { Next } from '../contracts/plugin.ts';
import type { CacheRoom } from '../contracts/rooms.ts';
import type { Environment, Log, Metrics } from '../contracts/telemetry.ts';
import { CompletionBuilder } from '../wire/collect.ts';
import { stringifyJson } from '../wire/json.ts';
import type { Shared } from '../wire/share.ts';
import { tokensOf } from '../wire/usage.ts';
import { type Question, toCacheKey, toQuestion } from './cache-key.ts';
import { Flight } from './flight.ts';
import { completionIn, KeptAnswer, toKeptAnswer } from './kept-answer.ts';
import { KeptAnswers } from './kept-answers.ts';
import { Meaning } from './meaning.ts';
import { type Leave, OneInstance } from './one-instance.ts';
import { type OfferedTools, type Policy, policyOf } from './policy.ts';

export interface CacheDeps {
  hot: HotStore;
  log: Log;
  metrics: Metrics;
  environment: Environment;
  offeredTools: OfferedTools;
  /** Undefined: nobody can say. */
  embed(config: Config, text: string, signal: AbortSignal): Promise<Float32Array | undefined>;
  /** Values in a text that the embedder may not have seen: questions that differ in them are two. */
  found(config: Config, text: string): string[];
  saved(answer: SavedAnswer, config: Config): void;
  /** An answer of these bytes that is parsed only when looked at. */
  rawAnswer(init: AnswerInit, raw: { bytes: Uint8Array; form: 'openai-chat' }): Answer;
}

/** Vectors may take this part of the memory for answers. */
const VECTOR_SHARE = 1 / 4;

export function createCacheRoom(deps: CacheDeps): CacheRoom {
  return new Cache(deps);
}

/** One request's way through the cache. */
interface Wanted {
  key: string;
  policy: Policy;
  cache: NonNullable<Config['cache']>;
  question?: Question | undefined;
  vector?: Float32Array | undefined;
  /** Other instances may wait for this answer. */
  leave?: Leave | undefined;
  kept?: Promise<boolean>;
}

class Cache implements CacheRoom {
  readonly #deps: CacheDeps;
  readonly #answers: KeptAnswers;
  readonly #flights = new Map<string, Flight>();
  readonly #one: OneInstance;
  readonly #requests;
  readonly #saved;
  #meaning: { of: number; index: Meaning } | undefined;

  constructor(deps: CacheDeps) {
    this.#deps = deps;
    this.#answers = new KeptAnswers(deps);
    this.#one = new OneInstance({ ...deps, answers: this.#answers });
    this.#requests = deps.metrics.counter('hermes_cache_requests_total', 'Requests that the answer cache had a part in.', ['outcome']);
    this.#saved = deps.metrics.counter('hermes_cache_tokens_saved_total', 'Tokens of answers that were given again instead of being made anew.', [
      'model',
      'direction',
    ]);
  }

  serve(exchange: Exchange, next: Next): Promise<Answer> | Answer {
    const { cache } = exchange.config;
    const policy = policyOf(exchange, this.#deps.offeredTools);
    if (policy === undefined || cache === undefined) return next();
    this.#answers.limit(cache.max_bytes);
    const wanted: Wanted = { key: toCacheKey(exchange, policy.tools), policy, cache };
    if (policy.read) {
      const kept = this.#answers.get(wanted.key, this.#maxAge(wanted));
      if (kept) return this.#hit(exchange, kept, 'hit');
      const flight = this.#flights.get(wanted.key);
      if (flight?.joinable) return this.#board(exchange, flight);
    }
    return this.#board(exchange, this.#start(exchange, next, wanted));
  }

  #maxAge({ policy, cache }: Wanted): number {
    return Math.min(policy.maxAgeMs, cache.ttl_seconds * 1000);
  }

  #start(exchange: Exchange, next: Next, wanted: Wanted): Flight {
    const { key } = wanted;
    const flight: Flight = new Flight(exchange, next, {
      find: (fork) => this.#find(fork, wanted),
      landed: (answer, source) => this.#keep(answer, source, wanted),
      over: () => {
        if (this.#flights.get(key) === flight) this.#flights.delete(key);
        leave(wanted);
      },
      awaited: () => wanted.leave !== undefined,
      maxBytes: this.#answers.largest,
    });
    this.#flights.set(key, flight);
    return flight;
  }

  async #board(exchange: Exchange, flight: Flight): Promise<Answer> {
    const { first, answer, body } = await flight.join(exchange, (facts) => this.#count(exchange, facts));
    if (answer instanceof KeptAnswer) return this.#hit(exchange, answer, 'hit');
    const given = body === undefined ? answer : this.#deps.rawAnswer(answer, { bytes: body, form: 'openai-chat' });
    if (!given.error) given.headers = { ...given.headers, 'x-hermes-cache': first ? 'miss' : 'hit' };
    exchange.answer = given;
    this.#requests.inc({ outcome: first ? 'miss' : 'joined' });
    // What a stream has saved is known at its end.
    if (!first && given.facts && !given.stream && !given.error) this.#count(exchange, given.facts);
    return exchange.answer as Answer;
  }

  #hit(exchange: Exchange, kept: KeptAnswer, outcome: string): Answer {
    const { facts, headers, body } = kept;
    const answer = this.#deps.rawAnswer({ headers: { ...headers, 'x-hermes-cache': 'hit' }, facts }, { bytes: body, form: 'openai-chat' });
    exchange.answer = answer;
    this.#requests.inc({ outcome });
    this.#count(exchange, facts);
    return answer;
  }

  #count({ principal, caller, session, route, config }: Exchange, { model = '', upstream = '', usage }: Answer['facts']): void {
    const { input, output } = tokensOf(usage);
    if (input + output === 0) return;
    this.#saved.inc({ model, direction: 'input' }, input);
    this.#saved.inc({ model, direction: 'output' }, output);
    const owner = { key: principal?.id ?? '', project: caller?.project ?? '', service: caller?.service ?? '', user: caller?.user, session: session?.id };
    this.#deps.saved({ ...owner, route: route?.rule ?? 'none', model, upstream, startedAt: this.#deps.environment.now(), tokens: input + output }, config);
  }

  /** In the shared store, then by meaning. */
  #find(fork: Exchange, wanted: Wanted): Promise<KeptAnswer | undefined> | undefined {
    const { policy, cache } = wanted;
    if (cache.semantic.enabled) wanted.question = toQuestion(fork, policy.tools, this.#deps.found);
    if (!this.#answers.shared && wanted.question === undefined) return undefined;
    return this.#look(fork, wanted);
  }

  async #look(fork: Exchange, wanted: Wanted): Promise<KeptAnswer | undefined> {
    const { key, policy, cache, question } = wanted;
    const maxAge = this.#maxAge(wanted);
    const shared = policy.read ? await this.#answers.fromShared(key, maxAge) : undefined;
    if (shared) return shared;
    if (question) wanted.vector = await this.#deps.embed(fork.config, question.text, fork.signal).catch(() => undefined);
    if (!policy.read) return undefined;
    const near = question && wanted.vector && this.#index(cache.max_bytes).find(question, wanted.vector, cache.semantic.threshold);
    const alike = near === undefined ? undefined : (this.#answers.get(near, maxAge) ?? (await this.#answers.fromShared(near, maxAge)));
    if (alike || !this.#answers.shared) return alike;
    const { found, leave: left } = await this.#one.take(fork, key, maxAge);
    wanted.leave = left;
    // Everybody has left meanwhile: nobody will tell of an end.
    if (fork.cancelled) leave(wanted);
    return found;
  }

  #index(maxBytes: number): Meaning {
    if (this.#meaning?.of !== maxBytes) this.#meaning = { of: maxBytes, index: new Meaning(maxBytes * VECTOR_SHARE) };
    return this.#meaning.index;
  }

  #keep(answer: Answer, source: { body?: Buffer; shared?: Shared }, wanted: Wanted): void {
    const { key, policy, cache, question, vector } = wanted;
    try {
      if (source.shared && !source.shared.whole) return;
      const completion = source.shared ? collected(source.shared, answer) : source.body && completionIn(source.body);
      if (completion === undefined) return;
      const body = source.body ?? Buffer.from(stringifyJson(completion));
      const kept = toKeptAnswer(answer, body, completion, policy.opted, this.#deps.environment.now());
      if (kept === undefined) return;
      wanted.kept = this.#answers.keep(key, kept, cache.ttl_seconds);
      if (question && vector) this.#index(cache.max_bytes).remember(question, vector, key);
    } catch (err) {
      this.#deps.log.warn({ err }, 'an answer could not be kept');
    }
  }
}

/** Lets other instances go on; once. */
function leave(wanted: Wanted): void {
  wanted.leave?.(wanted.kept);
  wanted.leave = undefined;
}

/** A stream's answer as a whole; its usage, which clients get only when they ask, is part of it. */
function collected(shared: Shared, answer: Answer): ReturnType<CompletionBuilder['build']> {
  const builder = new CompletionBuilder();
  for (const batch of shared.batches) for (const { view } of batch.chunks) builder.add(view);
  const completion = builder.build();
  const { usage } = answer.facts;
  for (const { message } of completion.choices) if (message.tool_calls) message.tool_calls = message.tool_calls.filter(Boolean);
  return usage && !completion.usage ? { ...completion, usage } : completion;
}

import type { Config } from '../contracts/config.ts';
import { type HermesError, isAbort } from '../contracts/errors.ts';
import type { Attempt, Exchange, ModelCall, TokenCounts } from '../contracts/exchange.ts';
import type { Environment } from '../contracts/telemetry.ts';
import type { ChatRequest, Usage } from '../wire/chat.ts';
import { tokensOf } from '../wire/usage.ts';
import { estimateInputTokens, estimateTextTokens, NO_TOKENS } from './estimate.ts';
import { failureOf } from './failure.ts';

export interface Books {
  /** Prices the call and tells whoever counts. Synchronous. */
  record(call: ModelCall, config: Config): void;
}
/** How a call ended. */
export interface CallEnd {
  status: number | undefined;
  error?: HermesError | undefined;
  /** An answer began. */
  answered: boolean;
  usage?: Usage | undefined;
  /** UTF-8 bytes of what was answered, counted only when no usage came. */
  answeredBytes: () => number;
  firstTokenAt?: number | undefined;
}

/** The one line in the books of one call: written once, synchronously, however the call ends. */
export class CallRecord {
  readonly #exchange: Exchange;
  readonly #attempt: Attempt;
  readonly #request: ChatRequest;
  readonly #environment: Environment;
  readonly #books: Books;
  readonly #startedAt: number;
  /** performance.now() */
  readonly start = performance.now();
  #ended = false;

  constructor(exchange: Exchange, attempt: Attempt, request: ChatRequest, environment: Environment, books: Books) {
    this.#exchange = exchange;
    this.#attempt = attempt;
    this.#request = request;
    this.#environment = environment;
    this.#books = books;
    this.#startedAt = environment.now();
    exchange.beginCall();
  }

  end(end: CallEnd): void {
    if (this.#ended) return;
    this.#ended = true;
    const call = this.#toCall(end);
    this.#books.record(call, this.#exchange.config);
    this.#exchange.trace.record('attempt', this.start, this.start + call.durationMs, toAttributes(call, this.#attempt));
    this.#exchange.addCall(call);
  }

  #toCall(end: CallEnd): ModelCall {
    const { principal, caller, session, route, trace, id, background } = this.#exchange;
    const { upstream, model } = this.#attempt;
    const estimated = end.usage === undefined && end.answered;
    return {
      id: this.#environment.uuid(),
      traceId: trace.id,
      requestId: id,
      startedAt: this.#startedAt,
      durationMs: performance.now() - this.start,
      firstTokenMs: end.firstTokenAt === undefined ? undefined : end.firstTokenAt - this.start,
      model,
      upstream: upstream.id,
      upstreamIdentity: upstream.identity,
      provider: upstream.provider,
      route: route?.rule ?? 'none',
      service: caller?.service ?? principal?.service ?? '',
      project: caller?.project ?? principal?.project ?? '',
      user: caller?.user,
      session: session?.id,
      key: principal?.id ?? '',
      outcome: toOutcome(end.error),
      status: end.status,
      error: end.error?.code,
      tokens: this.#toTokens(end, estimated),
      estimated,
      answered: end.answered,
      costNanoUsd: undefined,
      shadow: background,
    };
  }

  #toTokens(end: CallEnd, estimated: boolean): TokenCounts {
    if (end.usage) return tokensOf(end.usage);
    if (!estimated) return NO_TOKENS;
    return { ...NO_TOKENS, input: estimateInputTokens(this.#request), output: estimateTextTokens(end.answeredBytes()) };
  }
}

/** What its span tells; only what there is to tell. */
function toAttributes(call: ModelCall, { number, upstream }: Attempt): Record<string, string | number | boolean> {
  const { status, error, firstTokenMs, tokens, costNanoUsd } = call;
  const attributes: Record<string, string | number | boolean> = {
    number,
    model: call.model,
    upstream: call.upstream,
    provider: call.provider,
    model_name: upstream.modelName,
    outcome: call.outcome,
    input_tokens: tokens.input,
    output_tokens: tokens.output,
  };
  if (status !== undefined) attributes.status = status;
  if (error !== undefined) attributes.error = error;
  if (firstTokenMs !== undefined) attributes.first_token_ms = firstTokenMs;
  if (tokens.cached > 0) attributes.cached_tokens = tokens.cached;
  if (call.estimated) attributes.estimated = true;
  if (costNanoUsd !== undefined) attributes.cost_usd = costNanoUsd / 1e9;
  return attributes;
}

function toOutcome(error: HermesError | undefined): ModelCall['outcome'] {
  if (error === undefined) return 'ok';
  if (isAbort(error)) return 'aborted';
  if (error.code === 'upstream_timeout' || error.code === 'deadline_exceeded') return 'timeout';
  return failureOf(error)?.kind === 'rate_limited' ? 'rate_limited' : 'error';
}

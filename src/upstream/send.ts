import { HermesError, toHermesError } from '../contracts/errors.ts';
import type { Answer, AnswerInit, Attempt, Exchange, Facts } from '../contracts/exchange.ts';
import type { Provider, UpstreamCall } from '../contracts/provider.ts';
import type { Environment } from '../contracts/telemetry.ts';
import type { ChatRequest } from '../wire/chat.ts';
import { isRecord, parseJsonBytes } from '../wire/json.ts';
import { toMaker } from '../wire/maker.ts';
import type { JsonSource } from '../wire/splice-json.ts';
import { Concurrency, type Leave } from './concurrency.ts';
import { Lessons, type Quirks } from './lessons.ts';
import { type SendDeps, Sending, type Sent } from './sending.ts';

/** The innermost step of the pipeline: translates, calls, translates back, and makes the one ModelCall. A failure is an answer with `error`. */
export function createSend(deps: SendDeps): (exchange: Exchange) => Promise<Answer> {
  const lessons = new Lessons();
  const concurrency = new Concurrency();
  return async (exchange) => {
    const { attempt } = exchange;
    if (attempt === undefined) throw new Error('send stands behind a step that chooses an upstream');
    const facts: Facts = { model: attempt.model, upstream: attempt.upstream.id, maker: toMaker(attempt.upstream) };
    let leave: Leave | undefined;
    try {
      if (exchange.cancelled) throw exchange.cancelled;
      const provider = deps.provider(attempt.upstream.provider);
      if (provider === undefined) throw new HermesError('internal_error', `There is no provider "${attempt.upstream.provider}".`);
      const asked = performance.now();
      const entered = concurrency.enter(exchange, attempt.upstream);
      leave = entered instanceof Promise ? await entered : entered;
      facts.waitedMs = performance.now() - asked;
      const request = attempt.request ?? exchange.request;
      const answer = await sendTaught(deps, lessons, { exchange, attempt, request, provider, facts, over: leave });
      // A stream keeps its place until it is over.
      if (answer.stream === undefined) leave();
      exchange.answer = answer;
    } catch (thrown) {
      leave?.();
      exchange.answer = { error: toHermesError(thrown), facts };
    }
    return exchange.answer as Answer;
  };
}

/** Once more for each thing that the upstream's own refusal teaches. */
async function sendTaught(deps: SendDeps, lessons: Lessons, sent: Sent): Promise<Answer | AnswerInit> {
  const { exchange, attempt, request, provider, facts } = sent;
  const { upstream } = attempt;
  const caller = callersBody(exchange, provider);
  let tried: Quirks = {};
  for (;;) {
    const target = lessons.apply(upstream, tried);
    const prepared = prepare(provider, request, target === upstream ? attempt : { ...attempt, upstream: target }, deps.environment, caller);
    const call = prepared instanceof Promise ? await prepared : prepared;
    if (exchange.trace.traceparent) call.headers = { ...call.headers, ...toTraceHeaders(exchange, exchange.trace.traceparent) };
    if (call.droppedParams.length > 0) facts.droppedParams = call.droppedParams;
    if (exchange.cancelled) throw exchange.cancelled;
    try {
      const answer = await new Sending(deps, sent, call).run();
      lessons.keep(upstream, tried);
      return answer;
    } catch (thrown) {
      const taught = thrown instanceof HermesError && provider.form === 'openai-chat' && lessons.suggest(upstream, call, thrown, tried);
      if (!taught) throw thrown;
      tried = { ...tried, ...taught };
    }
  }
}

/** W3C Trace Context: whose caller takes part in a trace, its upstream is told. */
function toTraceHeaders({ headers }: Exchange, traceparent: string): Record<string, string> {
  return headers.tracestate ? { traceparent, tracestate: headers.tracestate } : { traceparent };
}

/** What the caller sent, when it speaks the upstream's form: parsed anew where a plugin may have changed the objects in place. */
function callersBody({ inbound, background }: Exchange, { form }: Provider): JsonSource | undefined {
  const { bytes, body, touched } = inbound;
  if (inbound.form !== form || bytes === undefined || !isRecord(body) || background) return undefined;
  const value = touched ? parseJsonBytes(bytes) : body;
  return isRecord(value) ? { bytes, value } : undefined;
}

function prepare(
  provider: Provider,
  request: ChatRequest,
  attempt: Attempt,
  environment: Environment,
  caller: JsonSource | undefined,
): UpstreamCall | Promise<UpstreamCall> {
  const { upstream } = attempt;
  if (upstream.apiKeyEnv !== undefined && !upstream.apiKey) {
    throw new HermesError('upstream_key_missing', `The model "${attempt.model}" has no key: its operator must set ${upstream.apiKeyEnv}.`);
  }
  const call = provider.toUpstream(request, upstream, attempt, caller);
  return provider.authorize === undefined ? call : authorized(() => provider.authorize?.(call, { apiKey: upstream.apiKey }, environment.now()) ?? call);
}

async function authorized(authorize: () => UpstreamCall | Promise<UpstreamCall>): Promise<UpstreamCall> {
  try {
    return await authorize();
  } catch (cause) {
    throw cause instanceof HermesError
      ? cause
      : new HermesError('upstream_auth_failed', "Hermes' credentials for this model could not be made ready.", { cause });
  }
}

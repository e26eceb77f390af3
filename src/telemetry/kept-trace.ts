import type { TraceRecord } from '../contracts/cold-store.ts';
import type { Ending } from '../contracts/ending.ts';
import type { Exchange, Facts, ModelCall } from '../contracts/exchange.ts';
import { ExchangeTrace } from './trace.ts';
import { toWaterfall } from './waterfall.ts';

/** A trace as it is kept in memory: references and numbers only, made into a record when somebody looks or it is stored. */
export interface KeptTrace {
  readonly id: string;
  readonly requestId: string;
  readonly startedAt: number;
  readonly durationMs: number;
  readonly status: number;
  readonly route: string;
  readonly model: string;
  readonly service: string;
  readonly session: string | undefined;
  readonly trace: Exchange['trace'];
  readonly calls: readonly ModelCall[];
  readonly toolCalls: Exchange['toolCalls'];
  readonly answer: Facts;
  readonly more: {
    readonly method: string;
    readonly path: string;
    readonly form: string;
    readonly stream: boolean;
    readonly project: string | undefined;
    readonly key: string | undefined;
    /** As the request stated them: what rules may have decided by. */
    readonly userLevel: string | undefined;
    readonly priority: string | undefined;
    readonly costRule: string | undefined;
    readonly error: string | undefined;
    readonly callerRequestId: string | undefined;
    readonly overheadMs: number | undefined;
    readonly firstTokenMs: number | undefined;
  };
}

/** Of the whole exchange only what a trace tells: bodies and messages are let go. */
export function keep(ended: Ending, exchange: Exchange): KeptTrace {
  const { trace, route, caller, principal, ask, wants } = exchange;
  const facts = exchange.answer?.facts ?? {};
  return {
    id: ended.traceId,
    requestId: ended.requestId,
    startedAt: trace.startedAt,
    durationMs: ended.durationMs,
    status: ended.status,
    route: facts.route ?? route?.rule ?? '',
    model: facts.model ?? route?.model ?? '',
    service: caller?.service ?? principal?.service ?? '',
    session: ask.sessionId,
    trace,
    calls: exchange.calls,
    toolCalls: facts.toolCalls ?? exchange.toolCalls,
    answer: facts,
    more: {
      method: ended.method,
      path: ended.path,
      form: wants.form,
      stream: wants.stream,
      project: caller?.project,
      key: principal?.id,
      userLevel: caller?.userLevel,
      priority: ask.priority,
      costRule: route?.costRule,
      error: ended.error,
      callerRequestId: ended.callerRequestId,
      overheadMs: ended.overheadMs,
      firstTokenMs: ended.firstTokenMs,
    },
  };
}

export function toRecord(kept: KeptTrace): TraceRecord {
  const { id, requestId, startedAt, durationMs, status, route, model, service, session, trace, calls } = kept;
  const spans = toWaterfall(trace.spans, durationMs);
  return { id, traceId: trace.traceId, requestId, startedAt, durationMs, status, route, model, service, session, spans, calls, facts: toFacts(kept) };
}

/** What was decided, under the names that callers know from `hermes` objects. Content only if it was captured. */
function toFacts({ more, answer, trace, calls, toolCalls }: KeptTrace): Record<string, unknown> {
  const content = trace instanceof ExchangeTrace ? trace.content?.view() : undefined;
  return defined({
    method: more.method,
    path: more.path,
    form: more.form,
    stream: more.stream,
    project: more.project,
    key: more.key,
    user_level: more.userLevel,
    priority: more.priority,
    error: more.error,
    caller_request_id: more.callerRequestId,
    cost_rule: more.costRule,
    overhead_ms: rounded(more.overheadMs),
    first_token_ms: rounded(more.firstTokenMs),
    upstream: answer.upstream ?? calls.at(-1)?.upstream,
    attempts: answer.attempts ?? (calls.length || undefined),
    degraded: answer.degraded,
    degraded_from: answer.original?.model,
    replayed: answer.replayed,
    finish_reason: answer.finishReason,
    upstream_finish_reason: answer.upstreamFinishReason,
    waited_ms: rounded(answer.waitedMs),
    session_messages: answer.sessionMessages,
    trimmed_messages: answer.trimmedMessages,
    context_tokens: answer.contextTokens,
    dropped_params: answer.droppedParams,
    tool_calls: toolCalls.length > 0 ? toolCalls : undefined,
    unavailable_tools: answer.unavailableTools,
    content,
  });
}

function rounded(milliseconds: number | undefined): number | undefined {
  return milliseconds === undefined ? undefined : Math.round(milliseconds * 1000) / 1000;
}

function defined(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

export interface TraceFilter {
  requestId?: string;
  traceId?: string;
  route?: string;
  status?: number;
  session?: string;
  from?: number;
  to?: number;
}

/** The same choice as the stores'. */
export function matches(kept: KeptTrace, { requestId, traceId, route, status, session, from, to }: TraceFilter): boolean {
  return (
    (requestId === undefined || kept.requestId === requestId) &&
    (traceId === undefined || kept.trace.traceId === traceId) &&
    (route === undefined || kept.route === route) &&
    (status === undefined || kept.status === status) &&
    (session === undefined || kept.session === session) &&
    (from === undefined || kept.startedAt >= from) &&
    (to === undefined || kept.startedAt < to)
  );
}

/** Beyond a page's last trace, newest first. */
export function isAfter(kept: KeptTrace, last: { startedAt: number; id: string } | undefined): boolean {
  return last === undefined || kept.startedAt < last.startedAt || (kept.startedAt === last.startedAt && kept.id < last.id);
}

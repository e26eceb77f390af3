import type { Page, TraceQuery, TraceRecord } from '../contracts/cold-store.ts';
import { HermesError } from '../contracts/errors.ts';
import { type AdminRoute, countOf, cursorOf, limitOf, timeOf } from './route.ts';

export interface TraceSource {
  get(id: string): Promise<TraceRecord | undefined>;
  list(query: TraceQuery): Promise<Page<TraceRecord>>;
}

/** An export without `limit` ends here. */
const MAX_EXPORTED = 10_000;
const PAGE = 500;

/** A W3C trace id that hermes made itself is the `x-request-id` without its dashes. */
const TRACE_ID = /^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$/;
function toId(traceId: string): string {
  return traceId.replace(TRACE_ID, '$1-$2-$3-$4-$5');
}

/** `/admin/traces`: paged, newest first, or the same as NDJSON; `/admin/traces/{x-request-id}`. */
export function traceRoutes(source: TraceSource): AdminRoute[] {
  return [
    {
      method: 'GET',
      pattern: '/admin/traces',
      async handle({ query }) {
        const format = query.get('format') || 'json';
        if (format === 'json') return { body: await listTraces(source, query) };
        if (format !== 'ndjson') throw new HermesError('invalid_value', "'format' must be json or ndjson.", { param: 'format' });
        const lines = (await exportTraces(source, query)).map((view) => `${JSON.stringify(view)}\n`);
        return { contentType: 'application/x-ndjson', body: lines.join('') };
      },
    },
    { method: 'GET', pattern: '/admin/traces/{id}', handle: async (_request, { id = '' }) => ({ body: await showTrace(source, id) }) },
  ];
}

/** One page, as the query's `limit`, `cursor`, `request_id`, `trace_id`, `route`, `status`, `session_id`, `from` and `to` say. */
export async function listTraces(source: TraceSource, query: URLSearchParams): Promise<{ data: Record<string, unknown>[]; next_cursor: string | null }> {
  const text = (name: string): string | undefined => query.get(name) || undefined;
  const cursor = cursorOf(query);
  const [requestId, traceId, route, session] = ['request_id', 'trace_id', 'route', 'session_id'].map(text);
  const status = countOf(query, 'status');
  const [from, to] = [timeOf(query, 'from'), timeOf(query, 'to')];
  const own = traceId && (await source.get(toId(traceId)));
  if (own) return { data: [toTraceView(own)], next_cursor: null };
  const { data, nextCursor } = await source.list({
    limit: limitOf(query),
    ...(cursor ? { cursor } : {}),
    ...(requestId ? { requestId } : {}),
    ...(traceId ? { traceId } : {}),
    ...(route ? { route } : {}),
    ...(session ? { session } : {}),
    ...(status ? { status } : {}),
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
  });
  return { data: data.map(toTraceView), next_cursor: nextCursor ?? null };
}

async function exportTraces(source: TraceSource, query: URLSearchParams): Promise<Record<string, unknown>[]> {
  if (query.has('limit')) return (await listTraces(source, query)).data;
  const page = new URLSearchParams(query);
  page.set('limit', String(PAGE));
  const views: Record<string, unknown>[] = [];
  while (views.length < MAX_EXPORTED) {
    const { data, next_cursor } = await listTraces(source, page);
    views.push(...data);
    if (next_cursor === null || data.length === 0) break;
    page.set('cursor', next_cursor);
  }
  return views;
}

/** By `x-request-id` (with or without its dashes), else the newest under that request id, else under that trace id of the caller's. */
export async function showTrace(source: TraceSource, id: string): Promise<Record<string, unknown>> {
  const asked = toId(id);
  const newest = async (filter: Pick<TraceQuery, 'requestId' | 'traceId'>): Promise<TraceRecord | undefined> =>
    (await source.list({ limit: 1, ...filter })).data[0];
  const trace = (await source.get(asked)) ?? (await newest({ requestId: id })) ?? (asked === id ? undefined : await newest({ traceId: id }));
  if (trace === undefined) throw new HermesError('not_found', 'There is no trace of that id; ids are what x-request-id says, and are kept trace.keep_days.');
  return toTraceView(trace);
}

/** A trace as operators see it: snake case, times ISO 8601, money in dollars. */
export function toTraceView(trace: TraceRecord): Record<string, unknown> {
  const sum = (pick: (call: TraceRecord['calls'][number]) => number): number => trace.calls.reduce((total, call) => total + pick(call), 0);
  return {
    id: trace.id,
    trace_id: trace.traceId,
    request_id: trace.requestId,
    started_at: new Date(trace.startedAt).toISOString(),
    duration_ms: exact(trace.durationMs),
    status: trace.status,
    route: trace.route,
    model: trace.model,
    service: trace.service,
    session_id: trace.session ?? null,
    tokens: {
      input: sum(({ tokens }) => tokens.input),
      cached: sum(({ tokens }) => tokens.cached),
      output: sum(({ tokens }) => tokens.output),
      reasoning: sum(({ tokens }) => tokens.reasoning),
    },
    cost_usd: sum(({ costNanoUsd }) => costNanoUsd ?? 0) / 1e9,
    ...trace.facts,
    spans: toSpanViews(trace.spans),
    calls: trace.calls.map((call) => ({
      id: call.id,
      model: call.model,
      upstream: call.upstream,
      provider: call.provider,
      outcome: call.outcome,
      status: call.status ?? null,
      error: call.error ?? null,
      started_at: new Date(call.startedAt).toISOString(),
      duration_ms: round(call.durationMs),
      first_token_ms: call.firstTokenMs === undefined ? null : round(call.firstTokenMs),
      tokens: call.tokens,
      estimated: call.estimated,
      cost_usd: call.costNanoUsd === undefined ? null : call.costNanoUsd / 1e9,
    })),
  };
}

/** `parent`: the name of the span that this one lies in, null for those that stand for themselves and add up to the whole. */
function toSpanViews(spans: TraceRecord['spans']): Record<string, unknown>[] {
  return spans.map(({ name, startMs, endMs, attributes, parent }) => ({
    name,
    parent: parent === undefined ? null : (spans[parent]?.name ?? null),
    start_ms: exact(startMs),
    end_ms: exact(endMs),
    duration_ms: exact(endMs - startMs),
    attributes,
  }));
}

/** To the microsecond: many small spans still add up. */
function exact(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000;
}

function round(milliseconds: number): number {
  return Math.round(milliseconds * 100) / 100;
}

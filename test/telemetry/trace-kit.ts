import type { LogLine, Reply, RunningApp } from '../app-kit.ts';

/** A trace as `/admin/traces` tells it. */
export interface TraceJson {
  id: string;
  trace_id: string;
  request_id: string;
  duration_ms: number;
  status: number;
  cost_usd: number;
  tokens: { input: number; output: number };
  spans: SpanJson[];
  calls: { tokens: { input: number; output: number } }[];
  content?: { request: unknown; answer: string };
}
export interface SpanJson {
  name: string;
  parent: string | null;
  start_ms: number;
  end_ms: number;
  duration_ms: number;
  attributes: Record<string, unknown>;
}

export const idOf = (reply: Reply): string => reply.headers.get('x-request-id') ?? '';
export const traceOf = async (app: RunningApp, reply: Reply): Promise<TraceJson> =>
  (await app.fetch(`/admin/traces/${idOf(reply)}`)).json as object as TraceJson;
export const requestLines = (app: RunningApp): LogLine[] => app.lines.filter(({ message, level }) => message === 'request' && level === 'info');

export async function allTraces(app: RunningApp): Promise<TraceJson[]> {
  const all: TraceJson[] = [];
  for (let cursor = ''; ; ) {
    const { json } = await app.fetch(`/admin/traces?limit=200${cursor && `&cursor=${cursor}`}`);
    all.push(...(json.data as TraceJson[]));
    if (json.next_cursor === null) return all;
    cursor = String(json.next_cursor);
  }
}

/** Of all series of a metric whose labels have `labels` in them. */
export const metricSum = (text: string, name: string, labels = ''): number =>
  text
    .split('\n')
    .filter((line) => line.startsWith(`${name}{`) && line.includes(labels))
    .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);

/** Undefined: no moment of the request is without a span, and the spans add up to it. */
export function gapIn({ id, spans, duration_ms }: TraceJson): string | undefined {
  let covered = 0;
  for (const span of spans) {
    if (span.start_ms - covered >= 0.01) return `${id}: a gap before ${span.name}`;
    covered = Math.max(covered, span.end_ms);
  }
  if (Math.abs(covered - duration_ms) >= 1) return `${id}: spans until ${covered} of ${duration_ms} ms`;
  // What runs side by side is more than its time.
  if (spans.some(({ name }) => name.startsWith('tool '))) return undefined;
  const sum = spans.filter(({ parent }) => parent === null).reduce((total, span) => total + span.duration_ms, 0);
  return Math.abs(sum - duration_ms) < 1 ? undefined : `${id}: spans of ${sum} ms in ${duration_ms} ms`;
}

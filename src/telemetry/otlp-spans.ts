import type { Span } from '../contracts/exchange.ts';
import type { KeptTrace } from './kept-trace.ts';
import { ExchangeTrace } from './trace.ts';
import { toWaterfall } from './waterfall.ts';

/** opentelemetry-proto, trace.v1: SpanKind and StatusCode. */
const KIND = { internal: 1, server: 2, client: 3 } as const;
const STATUS = { unset: 0, error: 2 } as const;

type Value = { stringValue: string } | { intValue: string } | { doubleValue: number } | { boolValue: boolean } | { arrayValue: { values: Value[] } };
export interface OtlpAttribute {
  key: string;
  value: Value;
}
/** A span as OTLP's JSON has it: ids in hex, times and integers as strings. */
export interface OtlpSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: OtlpAttribute[];
  status: { code: number };
}

type Attributes = Record<string, string | number | boolean | readonly string[] | undefined>;

/** The request as a server span and its steps below it; model calls and tool calls in OpenTelemetry's GenAI conventions (v1.38). */
export function toOtlpSpans(kept: KeptTrace): OtlpSpan[] {
  const { trace } = kept;
  const own = trace instanceof ExchangeTrace ? trace : new ExchangeTrace(kept.id, kept.startedAt, 0);
  const at = (milliseconds: number): string => toNanoseconds(kept.startedAt, milliseconds);
  const root: OtlpSpan = {
    traceId: own.traceId,
    spanId: own.spanId,
    ...(own.parentSpanId ? { parentSpanId: own.parentSpanId } : {}),
    name: `${kept.more.method} ${kept.more.path}`,
    kind: KIND.server,
    startTimeUnixNano: at(0),
    endTimeUnixNano: at(kept.durationMs),
    attributes: toAttributes(rootAttributes(kept)),
    status: { code: kept.status >= 500 ? STATUS.error : STATUS.unset },
  };
  const spans = toWaterfall(trace.spans, kept.durationMs);
  const idOf = (index: number): string => childId(own.spanId, index);
  const children = spans.map((span, index): OtlpSpan => {
    const { name, kind, attributes, failed } = describe(span, kept);
    return {
      traceId: own.traceId,
      spanId: idOf(index),
      parentSpanId: span.parent === undefined ? own.spanId : idOf(span.parent),
      name,
      kind,
      startTimeUnixNano: at(span.startMs),
      endTimeUnixNano: at(span.endMs),
      attributes: toAttributes(attributes),
      status: { code: failed ? STATUS.error : STATUS.unset },
    };
  });
  return [root, ...children];
}

function rootAttributes(kept: KeptTrace): Attributes {
  const { more, answer } = kept;
  return {
    'http.request.method': more.method,
    'url.path': more.path,
    'http.response.status_code': kept.status,
    'error.type': kept.status >= 400 ? (more.error ?? String(kept.status)) : undefined,
    'gen_ai.conversation.id': kept.session,
    'hermes.x_request_id': kept.id,
    'hermes.request_id': kept.requestId,
    'hermes.route': kept.route || undefined,
    'hermes.model': kept.model || undefined,
    'hermes.upstream': answer.upstream,
    'hermes.service': kept.service || undefined,
    'hermes.project': more.project,
    'hermes.attempts': answer.attempts,
    'hermes.degraded': answer.degraded,
    'hermes.replayed': answer.replayed,
    'hermes.overhead_ms': more.overheadMs,
    'hermes.first_token_ms': more.firstTokenMs,
  };
}

interface Described {
  name: string;
  kind: number;
  attributes: Attributes;
  failed: boolean;
}

function describe(span: Span, kept: KeptTrace): Described {
  if (span.name === 'attempt') return describeAttempt(span, kept);
  if (span.name.startsWith('tool ')) return describeTool(span);
  return { name: span.name, kind: KIND.internal, attributes: prefixed(span.attributes), failed: false };
}

/** "Inference": https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/ */
function describeAttempt({ attributes }: Span, kept: KeptTrace): Described {
  const { model_name, provider, outcome, error, status, input_tokens, output_tokens, cached_tokens, first_token_ms, model, upstream, number, cost_usd } =
    attributes;
  const failed = outcome !== 'ok';
  return {
    name: `chat ${model_name ?? ''}`.trim(),
    kind: KIND.client,
    failed,
    attributes: {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': provider,
      'gen_ai.request.model': model_name,
      'gen_ai.response.model': failed ? undefined : model_name,
      'gen_ai.response.finish_reasons': !failed && kept.answer.finishReason ? [kept.answer.finishReason] : undefined,
      'gen_ai.conversation.id': kept.session,
      'gen_ai.usage.input_tokens': failed ? undefined : input_tokens,
      'gen_ai.usage.output_tokens': failed ? undefined : output_tokens,
      'gen_ai.usage.cache_read.input_tokens': cached_tokens,
      'error.type': failed ? (error ?? String(outcome)) : undefined,
      'http.response.status_code': status,
      'hermes.model': model,
      'hermes.upstream': upstream,
      'hermes.attempt': number,
      'hermes.outcome': outcome,
      'hermes.first_token_ms': first_token_ms,
      'hermes.cost_usd': cost_usd,
    },
  };
}

/** "Execute tool" of the same conventions. */
function describeTool({ name, attributes }: Span): Described {
  const tool = name.slice('tool '.length);
  const { request_id, status, tries } = attributes;
  const failed = status !== 'ok' && status !== 'replayed';
  return {
    name: `execute_tool ${tool}`,
    kind: KIND.internal,
    failed,
    attributes: {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': tool,
      'gen_ai.tool.type': 'function',
      'gen_ai.tool.call.id': request_id,
      'error.type': failed ? String(status) : undefined,
      'hermes.status': status,
      'hermes.tries': tries,
    },
  };
}

function prefixed(attributes: Span['attributes']): Attributes {
  return Object.fromEntries(Object.entries(attributes).map(([name, value]) => [`hermes.${name}`, value]));
}

export function toAttributes(attributes: Attributes): OtlpAttribute[] {
  return Object.entries(attributes).flatMap(([key, value]) => (value === undefined ? [] : [{ key, value: toValue(value) }]));
}

function toValue(value: string | number | boolean | readonly string[]): Value {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'number') return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  return { arrayValue: { values: value.map((item) => ({ stringValue: item })) } };
}

/** Unix milliseconds and a part of one as nanoseconds: beyond 2^53, hence in two parts. */
function toNanoseconds(startedAt: number, milliseconds: number): string {
  return String(BigInt(Math.round(startedAt)) * 1_000_000n + BigInt(Math.max(0, Math.round(milliseconds * 1e6))));
}

/** Eight bytes, of the root's own and the span's place: the same span is the same id however often it is sent. */
function childId(rootId: string, index: number): string {
  const low = (Number.parseInt(rootId.slice(8), 16) ^ (index + 1)) >>> 0;
  return rootId.slice(0, 8) + low.toString(16).padStart(8, '0');
}

import { type Attributes, type HrTime, type SpanContext, SpanKind, type SpanStatus, SpanStatusCode, TraceFlags } from '@opentelemetry/api';
import type { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import {
  ATTR_ERROR_TYPE,
  ATTR_GEN_AI_CONVERSATION_ID,
  ATTR_GEN_AI_OPERATION_NAME,
  ATTR_GEN_AI_PROVIDER_NAME,
  ATTR_GEN_AI_REQUEST_MODEL,
  ATTR_GEN_AI_REQUEST_STREAM,
  ATTR_GEN_AI_RESPONSE_FINISH_REASONS,
  ATTR_GEN_AI_RESPONSE_MODEL,
  ATTR_GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK,
  ATTR_GEN_AI_TOOL_CALL_ID,
  ATTR_GEN_AI_TOOL_NAME,
  ATTR_GEN_AI_TOOL_TYPE,
  ATTR_GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS,
  ATTR_GEN_AI_USAGE_INPUT_TOKENS,
  ATTR_GEN_AI_USAGE_OUTPUT_TOKENS,
  ATTR_HTTP_REQUEST_METHOD,
  ATTR_HTTP_RESPONSE_STATUS_CODE,
  ATTR_URL_PATH,
  GEN_AI_OPERATION_NAME_VALUE_CHAT,
  GEN_AI_OPERATION_NAME_VALUE_EXECUTE_TOOL,
} from '@opentelemetry/semantic-conventions/incubating';
import type { Span } from '../contracts/exchange.ts';
import type { KeptTrace } from './kept-trace.ts';
import { ExchangeTrace } from './trace.ts';
import { toWaterfall } from './waterfall.ts';

/** What OpenTelemetry's exporters take. */
export type ReadableSpan = Parameters<OTLPTraceExporter['export']>[0][number];
export type Origin = Pick<ReadableSpan, 'resource' | 'instrumentationScope'>;

type Given = Record<string, string | number | boolean | string[] | undefined>;
interface Described {
  name: string;
  kind: SpanKind;
  attributes: Given;
  failed: boolean;
}

/** The request as a server span and its steps below it; model calls and tool calls in OpenTelemetry's GenAI conventions. */
export function toReadableSpans(kept: KeptTrace, origin: Origin): ReadableSpan[] {
  const { trace, startedAt, durationMs } = kept;
  const own = trace instanceof ExchangeTrace ? trace : new ExchangeTrace(kept.id, startedAt, 0);
  const { traceId, spanId, parentSpanId } = own;
  const contextOf = (id: string): SpanContext => ({ traceId, spanId: id, traceFlags: TraceFlags.SAMPLED });
  const caller = parentSpanId === undefined ? undefined : { ...contextOf(parentSpanId), isRemote: true };
  const root = new KeptSpan(describeRequest(kept), startedAt, { startMs: 0, endMs: durationMs }, contextOf(spanId), caller, origin);
  const spans = toWaterfall(trace.spans, durationMs);
  const contexts = childIds(spanId, spans.length).map(contextOf);
  return [
    root,
    ...spans.map((span, at) => {
      const parent = (span.parent === undefined ? undefined : contexts[span.parent]) ?? root.spanContext();
      return new KeptSpan(describe(span, kept), startedAt, span, contexts[at] ?? contextOf(spanId), parent, origin);
    }),
  ];
}

const UNSET: SpanStatus = Object.freeze({ code: SpanStatusCode.UNSET });
const FAILED: SpanStatus = Object.freeze({ code: SpanStatusCode.ERROR });
const NONE: never[] = [];

class KeptSpan implements ReadableSpan {
  readonly name: string;
  readonly kind: SpanKind;
  readonly parentSpanContext?: SpanContext;
  readonly startTime: HrTime;
  readonly endTime: HrTime;
  readonly status: SpanStatus;
  readonly attributes: Attributes;
  readonly resource: ReadableSpan['resource'];
  readonly instrumentationScope: ReadableSpan['instrumentationScope'];
  readonly links = NONE;
  readonly events = NONE;
  readonly ended = true;
  readonly droppedAttributesCount = 0;
  readonly droppedEventsCount = 0;
  readonly droppedLinksCount = 0;
  readonly #context: SpanContext;

  constructor(
    { name, kind, attributes, failed }: Described,
    startedAt: number,
    { startMs, endMs }: Pick<Span, 'startMs' | 'endMs'>,
    context: SpanContext,
    parent: SpanContext | undefined,
    origin: Origin,
  ) {
    this.name = name;
    this.kind = kind;
    if (parent) this.parentSpanContext = parent;
    this.startTime = toTime(startedAt, startMs);
    this.endTime = toTime(startedAt, endMs);
    this.status = failed ? FAILED : UNSET;
    this.attributes = defined(attributes);
    this.resource = origin.resource;
    this.instrumentationScope = origin.instrumentationScope;
    this.#context = context;
  }
  spanContext(): SpanContext {
    return this.#context;
  }
  get duration(): HrTime {
    const seconds = this.endTime[0] - this.startTime[0];
    const nanoseconds = this.endTime[1] - this.startTime[1];
    return nanoseconds < 0 ? [seconds - 1, nanoseconds + 1e9] : [seconds, nanoseconds];
  }
}

function describeRequest(kept: KeptTrace): Described {
  const { more, answer } = kept;
  return {
    name: `${more.method} ${more.path}`,
    kind: SpanKind.SERVER,
    failed: kept.status >= 500,
    attributes: {
      [ATTR_HTTP_REQUEST_METHOD]: more.method,
      [ATTR_URL_PATH]: more.path,
      [ATTR_HTTP_RESPONSE_STATUS_CODE]: kept.status,
      [ATTR_ERROR_TYPE]: kept.status >= 400 ? (more.error ?? String(kept.status)) : undefined,
      [ATTR_GEN_AI_CONVERSATION_ID]: kept.session,
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
    },
  };
}

function describe(span: Span, kept: KeptTrace): Described {
  if (span.name === 'attempt') return describeAttempt(span, kept);
  if (span.name.startsWith('tool ')) return describeTool(span);
  return { name: span.name, kind: SpanKind.INTERNAL, attributes: prefixed(span.attributes), failed: false };
}

/** "Inference": https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/ */
function describeAttempt({ attributes }: Span, kept: KeptTrace): Described {
  const { model_name, provider, outcome, error, status, input_tokens, output_tokens, cached_tokens, first_token_ms, model, upstream, number, cost_usd } =
    attributes;
  const failed = outcome !== 'ok';
  return {
    name: `${GEN_AI_OPERATION_NAME_VALUE_CHAT} ${model_name ?? ''}`.trim(),
    kind: SpanKind.CLIENT,
    failed,
    attributes: {
      [ATTR_GEN_AI_OPERATION_NAME]: GEN_AI_OPERATION_NAME_VALUE_CHAT,
      [ATTR_GEN_AI_PROVIDER_NAME]: provider,
      [ATTR_GEN_AI_REQUEST_MODEL]: model_name,
      [ATTR_GEN_AI_REQUEST_STREAM]: kept.more.stream || undefined,
      [ATTR_GEN_AI_RESPONSE_MODEL]: failed ? undefined : model_name,
      [ATTR_GEN_AI_RESPONSE_FINISH_REASONS]: !failed && kept.answer.finishReason ? [kept.answer.finishReason] : undefined,
      [ATTR_GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK]: typeof first_token_ms === 'number' ? first_token_ms / 1000 : undefined,
      [ATTR_GEN_AI_CONVERSATION_ID]: kept.session,
      [ATTR_GEN_AI_USAGE_INPUT_TOKENS]: failed ? undefined : input_tokens,
      [ATTR_GEN_AI_USAGE_OUTPUT_TOKENS]: failed ? undefined : output_tokens,
      [ATTR_GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS]: cached_tokens,
      [ATTR_ERROR_TYPE]: failed ? (error ?? String(outcome)) : undefined,
      [ATTR_HTTP_RESPONSE_STATUS_CODE]: status,
      'hermes.model': model,
      'hermes.upstream': upstream,
      'hermes.attempt': number,
      'hermes.outcome': outcome,
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
    name: `${GEN_AI_OPERATION_NAME_VALUE_EXECUTE_TOOL} ${tool}`,
    kind: SpanKind.INTERNAL,
    failed,
    attributes: {
      [ATTR_GEN_AI_OPERATION_NAME]: GEN_AI_OPERATION_NAME_VALUE_EXECUTE_TOOL,
      [ATTR_GEN_AI_TOOL_NAME]: tool,
      [ATTR_GEN_AI_TOOL_TYPE]: 'function',
      [ATTR_GEN_AI_TOOL_CALL_ID]: request_id,
      [ATTR_ERROR_TYPE]: failed ? String(status) : undefined,
      'hermes.status': status,
      'hermes.tries': tries,
    },
  };
}

function prefixed(attributes: Span['attributes']): Given {
  const given: Given = {};
  for (const name in attributes) given[`hermes.${name}`] = attributes[name];
  return given;
}

function defined(given: Given): Attributes {
  const attributes: Attributes = {};
  for (const name in given) {
    const value = given[name];
    if (value !== undefined) attributes[name] = value;
  }
  return attributes;
}

/** Unix milliseconds and a part of one as OpenTelemetry's pair: nanoseconds since 1970 are beyond 2^53. */
function toTime(startedAt: number, milliseconds: number): HrTime {
  const whole = Math.floor(startedAt / 1000);
  const nanoseconds = Math.round((startedAt - whole * 1000) * 1e6 + Math.max(0, milliseconds) * 1e6);
  const seconds = Math.floor(nanoseconds / 1e9);
  return [whole + seconds, nanoseconds - seconds * 1e9];
}

/** Eight bytes each, of the root's own and the span's place: the same span is the same id however often it is sent. */
function childIds(rootId: string, count: number): string[] {
  const [high, low] = [rootId.slice(0, 8), Number.parseInt(rootId.slice(8), 16)];
  return Array.from({ length: count }, (_, index) => high + ((low ^ (index + 1)) >>> 0).toString(16).padStart(8, '0'));
}

/** A span: one step's time, with what is worth knowing of it. Times in milliseconds since the exchange began. */
export interface Span {
  name: string;
  startMs: number;
  endMs: number;
  attributes: Record<string, string | number | boolean>;
  /** Of a trace that is over: the place of the span that this one lies in. */
  parent?: number;
}
export interface Trace {
  /** `x-request-id`. */
  readonly id: string;
  /** W3C trace id, 32 hex digits; taken over from an incoming `traceparent`. */
  readonly traceId: string;
  /** For upstreams, when the caller itself takes part in a trace. */
  readonly traceparent?: string | undefined;
  readonly startedAt: number;
  /** Starts a span; the returned function ends it. */
  span(name: string, attributes?: Record<string, string | number | boolean>): (attributes?: Record<string, string | number | boolean>) => void;
  /** Records a span that is over; times in milliseconds of performance.now(). */
  record(name: string, start: number, end: number, attributes?: Record<string, string | number | boolean>): void;
  readonly spans: readonly Span[];
}

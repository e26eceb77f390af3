/** Structured log; `request_id` is bound where there is one. Never content, never a secret. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  child(fields: object): Log;
}
export interface Counter {
  inc(labels: Record<string, string>, value?: number): void;
}
export interface Gauge {
  set(labels: Record<string, string>, value: number): void;
}
export interface Histogram {
  /** `source` is where the value comes from: now and then it becomes its bucket's exemplar. */
  observe(labels: Record<string, string>, seconds: number, source?: ExemplarSource): void;
}
/** A request that can be looked at. What is undefined is not told. */
export interface ExemplarSource {
  /** `x-request-id`. */
  readonly id: string;
  /** W3C, 32 hex digits. */
  readonly traceId?: string | undefined;
}
/** `openmetrics` has exemplars. */
export type MetricsFormat = 'text' | 'openmetrics';
/** Prometheus metrics; asking for a name twice gives the same one. Never a user or a session as a label. */
export interface Metrics {
  counter(name: string, help: string, labels?: readonly string[]): Counter;
  gauge(name: string, help: string, labels?: readonly string[]): Gauge;
  histogram(name: string, help: string, labels?: readonly string[], buckets?: readonly number[]): Histogram;
  /** Everything, for a scrape; without a format in that of `contentType`. */
  text(format?: MetricsFormat): Promise<string>;
  readonly contentType: string;
}
/** Clock, ids and randomness, handed in so that tests can set them. */
export interface Environment {
  /** Unix milliseconds. */
  now(): number;
  uuid(): string;
  /** [0, 1). */
  random(): number;
}

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
  observe(labels: Record<string, string>, seconds: number): void;
}
/** Prometheus metrics; asking for a name twice gives the same one. Never a user or a session as a label. */
export interface Metrics {
  counter(name: string, help: string, labels?: readonly string[]): Counter;
  gauge(name: string, help: string, labels?: readonly string[]): Gauge;
  histogram(name: string, help: string, labels?: readonly string[], buckets?: readonly number[]): Histogram;
  text(): Promise<string>;
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

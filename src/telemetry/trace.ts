import { randomBytes } from 'node:crypto';
import type { Span, Trace } from '../contracts/exchange.ts';

/** W3C Trace Context: version-traceid-parentid-flags. */
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}/;

type Attributes = Record<string, string | number | boolean>;

/** One request's spans. Times are milliseconds since it began. */
export class ExchangeTrace implements Trace {
  readonly id: string;
  readonly startedAt: number;
  readonly #origin: number;
  readonly #spans: Span[] = [];
  readonly #traceparent: string | undefined;
  #traceId: string | undefined;

  /** `origin`: performance.now() at the request's arrival. */
  constructor(id: string, startedAt: number, origin: number, traceparent?: string) {
    this.id = id;
    this.startedAt = startedAt;
    this.#origin = origin;
    this.#traceparent = traceparent;
  }
  get traceId(): string {
    this.#traceId ??= this.#traceparent?.match(TRACEPARENT)?.[1] ?? randomBytes(16).toString('hex');
    return this.#traceId;
  }
  get spans(): readonly Span[] {
    return this.#spans;
  }
  record(name: string, start: number, end: number, attributes: Attributes = {}): void {
    this.#spans.push({ name, startMs: start - this.#origin, endMs: end - this.#origin, attributes });
  }
  span(name: string, attributes: Attributes = {}): (more?: Attributes) => void {
    const start = performance.now();
    let open = true;
    return (more) => {
      if (!open) return;
      open = false;
      this.record(name, start, performance.now(), more ? { ...attributes, ...more } : attributes);
    };
  }
}

import { randomBytes } from 'node:crypto';
import type { Span, Trace } from '../contracts/exchange.ts';
import type { CapturedContent } from './captured-content.ts';

/** W3C Trace Context: version-traceid-parentid-flags. Ids of zeros are invalid, and so is version ff. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const NO_ATTRIBUTES: Attributes = Object.freeze({});

type Attributes = Record<string, string | number | boolean>;

/** One request's spans. Recording costs a few array entries; the objects are made by whoever looks. Times are milliseconds since it began. */
export class ExchangeTrace implements Trace {
  readonly id: string;
  readonly startedAt: number;
  /** Kept only under `trace.capture_content`. */
  content: CapturedContent | undefined;
  readonly #origin: number;
  readonly #names: string[] = [];
  /** Start and end of each span, in turn. */
  readonly #times: number[] = [];
  readonly #attributes: (Attributes | undefined)[] = [];
  readonly #incoming: RegExpExecArray | null;
  #traceId: string | undefined;

  /** `origin`: performance.now() at the request's arrival. `traceparent`: the caller's, if it sent one. */
  constructor(id: string, startedAt: number, origin: number, traceparent?: string) {
    this.id = id;
    this.startedAt = startedAt;
    this.#origin = origin;
    this.#incoming = traceparent === undefined ? null : TRACEPARENT.exec(traceparent);
  }
  /** The caller's, else our own id in W3C's form: a random UUID is 32 random hex digits. */
  get traceId(): string {
    this.#traceId ??= this.#incoming?.[1] ?? (UUID.test(this.id) ? this.id.replaceAll('-', '') : randomBytes(16).toString('hex'));
    return this.#traceId;
  }
  /** Of the span that is the whole request. */
  get spanId(): string {
    return UUID.test(this.id) ? this.id.slice(19).replace('-', '') : this.traceId.slice(16);
  }
  /** The caller's span that this request belongs to. */
  get parentSpanId(): string | undefined {
    return this.#incoming?.[2];
  }
  /** What upstreams are told when the caller takes part in a trace. */
  get traceparent(): string | undefined {
    return this.#incoming ? `00-${this.traceId}-${this.spanId}-${this.#incoming[3] ?? '00'}` : undefined;
  }
  get spans(): readonly Span[] {
    return this.#names.map((name, at) => ({
      name,
      startMs: this.#times[2 * at] ?? 0,
      endMs: this.#times[2 * at + 1] ?? 0,
      attributes: this.#attributes[at] ?? NO_ATTRIBUTES,
    }));
  }
  record(name: string, start: number, end: number, attributes?: Attributes): void {
    this.#names.push(name);
    this.#times.push(start - this.#origin, end - this.#origin);
    this.#attributes.push(attributes);
  }
  span(name: string, attributes?: Attributes): (more?: Attributes) => void {
    const start = performance.now();
    let open = true;
    return (more) => {
      if (!open) return;
      open = false;
      this.record(name, start, performance.now(), more ? { ...attributes, ...more } : attributes);
    };
  }
}

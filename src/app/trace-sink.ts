import { LRUCache } from 'lru-cache';
import type { Page, TraceRecord } from '../contracts/cold-store.ts';
import type { Counter, Log, Metrics } from '../contracts/telemetry.ts';
import type { Ending } from '../ingress/gateway.ts';
import type { House } from './house.ts';

/** Newest traces in memory, for views. */
const RING = 2000;
const FLUSH_MS = 1000;
/**
 * Traces stored a second, at most: at thousands of requests a second the store would do little else. Failed requests go
 * first; what is left out is counted.
 */
const MAX_STORED = 100;

export interface TraceQuery {
  limit: number;
  cursor?: string;
  requestId?: string;
  route?: string;
  status?: number;
  session?: string;
  from?: number;
  to?: number;
}

/** Traces of requests that are over: at once in a ring, in batches in the cold store. Never in the way of a request. */
export class TraceSink {
  readonly #house: House;
  readonly #log: Log;
  readonly #ring = new LRUCache<string, TraceRecord>({ max: RING });
  #waiting: TraceRecord[] = [];
  #flushing: Promise<void> | undefined;
  readonly #left: Counter;
  readonly #timer: NodeJS.Timeout;

  constructor(house: House, log: Log, metrics: Metrics) {
    this.#house = house;
    this.#left = metrics.counter('hermes_traces_not_stored_total', 'Traces that were left out of the store, since too many came at once.');
    this.#log = log;
    this.#timer = setInterval(() => void this.flush(), FLUSH_MS).unref();
  }

  /** Refused credentials have a log line and a metric, but no trace. */
  add(ending: Ending): void {
    const { exchange } = ending;
    if (exchange?.principal === undefined) return;
    const record = toRecord(ending, exchange);
    this.#ring.set(record.id, record);
    if (exchange.config.trace.keep_days <= 0) return;
    this.#keep(record);
  }

  /** Within the bound every trace waits; beyond it a failed one takes the place of a good one. */
  #keep(record: TraceRecord): void {
    if (this.#waiting.length < MAX_STORED) {
      this.#waiting.push(record);
      return;
    }
    this.#left.inc({});
    if (record.status < 400) return;
    const good = this.#waiting.findIndex(({ status }) => status < 400);
    if (good >= 0) this.#waiting[good] = record;
  }

  async get(id: string): Promise<TraceRecord | undefined> {
    return this.#ring.get(id) ?? this.#house.cold.readTrace(id);
  }

  async list(query: TraceQuery): Promise<Page<TraceRecord>> {
    await this.flush();
    return this.#house.cold.listTraces(query);
  }

  flush(): Promise<void> {
    this.#flushing ??= this.#write().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.flush();
  }

  async #write(): Promise<void> {
    const batch = this.#waiting;
    if (batch.length === 0) return;
    this.#waiting = [];
    try {
      await this.#house.cold.writeTraces(batch);
    } catch (err) {
      this.#log.warn({ err, traces: batch.length }, 'traces could not be stored; they will be tried again');
      this.#waiting = [...batch, ...this.#waiting].slice(-MAX_STORED);
    }
  }
}

function toRecord(ending: Ending, exchange: NonNullable<Ending['exchange']>): TraceRecord {
  const { trace, answer, route, caller, ask } = exchange;
  const facts = answer?.facts ?? {};
  return {
    id: ending.traceId,
    traceId: trace.traceId,
    requestId: ending.requestId,
    startedAt: trace.startedAt,
    durationMs: ending.durationMs,
    status: ending.status,
    route: facts.route ?? route?.rule ?? '',
    model: facts.model ?? route?.model ?? '',
    service: caller?.service ?? '',
    session: ask.sessionId,
    spans: trace.spans,
    calls: exchange.calls,
    facts: {
      method: ending.method,
      path: ending.path,
      project: caller?.project,
      ...(ending.error ? { error: ending.error } : {}),
      ...(ending.overheadMs === undefined ? {} : { overhead_ms: ending.overheadMs }),
      ...(ending.firstTokenMs === undefined ? {} : { first_token_ms: ending.firstTokenMs }),
      ...Object.fromEntries(Object.entries(facts).filter(([name]) => name !== 'original')),
    },
  };
}

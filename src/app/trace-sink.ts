import type { Page, TraceRecord } from '../contracts/cold-store.ts';
import type { Ending } from '../contracts/ending.ts';
import type { Counter, Environment, Log, Metrics } from '../contracts/telemetry.ts';
import { isAfter, type KeptTrace, keep, matches, type TraceFilter, toRecord } from '../telemetry/kept-trace.ts';
import { isSampled } from '../telemetry/sampling.ts';
import { ExchangeTrace } from '../telemetry/trace.ts';
import { TraceRing } from '../telemetry/trace-ring.ts';
import { fromCursor, toCursor } from '../wire/cursor.ts';

/** Newest traces in memory, for views. */
const RING = 2000;
/** Characters of captured content among them, and among those that wait for the store. */
const RING_CONTENT = 32 * 1024 ** 2;
const MAX_WAITING_CONTENT = 64 * 1024 ** 2;
const FLUSH_MS = 1000;
/** Traces stored a second while requests keep coming: one costs as much as a request, and so at thousands a second the gateway would do little else. */
const BUSY_BATCH = 25;
/** And when they do not. */
const IDLE_BATCH = 250;
/** Requests a second up to which the gateway counts as idle. */
const IDLE_RATE = 50;
/** What waits for the store at most; beyond it traces are left out and counted, good ones first. */
const MAX_WAITING = 5000;
const SWEEP_MS = 3_600_000;
const DAY_MS = 86_400_000;

export interface TraceQuery extends TraceFilter {
  limit: number;
  cursor?: string;
}
/** The part of the cold store that keeps traces. */
export interface TraceStore {
  writeTraces(traces: readonly TraceRecord[]): Promise<void>;
  readTrace(id: string): Promise<TraceRecord | undefined>;
  listTraces(query: TraceQuery): Promise<Page<TraceRecord>>;
  deleteTracesBefore(at: number): Promise<number>;
}
export interface TraceSinkDeps {
  cold: TraceStore;
  log: Log;
  metrics: Metrics;
  environment: Environment;
  /** `trace.keep_days` of the configuration in use. */
  keepDays(): number;
  /** Hears of every trace; must return at once. */
  exported?: ((trace: KeptTrace) => void) | undefined;
}

/** Traces of requests that are over: at once in a ring, in batches in the cold store. Never in the way of a request. */
export class TraceSink {
  readonly #deps: TraceSinkDeps;
  readonly #left: Counter;
  readonly #timers: NodeJS.Timeout[];
  readonly #ring = new TraceRing(RING, RING_CONTENT, contentOf);
  #waiting: KeptTrace[] = [];
  #waitingContent = 0;
  #arrived = 0;
  #flushing: Promise<void> | undefined;

  constructor(deps: TraceSinkDeps) {
    this.#deps = deps;
    this.#left = deps.metrics.counter('hermes_traces_not_stored_total', 'Traces that were left out of the store, since too many came at once.');
    this.#timers = [
      setInterval(() => void this.#tick(), FLUSH_MS),
      setInterval(() => void this.sweep(), SWEEP_MS),
      setTimeout(() => void this.sweep(), 10_000),
    ];
    for (const timer of this.#timers) timer.unref();
  }

  /** Refused credentials have a log line and a metric, but no trace. */
  add(ending: Ending): void {
    const { exchange } = ending;
    if (exchange?.principal === undefined) return;
    const kept = keep(ending, exchange);
    this.#arrived++;
    this.#ring.add(kept);
    const { keep_days, sample } = exchange.config.trace;
    if (!isSampled(kept, sample)) return;
    this.#deps.exported?.(kept);
    if (keep_days > 0) this.#wait(kept);
  }

  /** Within the bound every trace waits; beyond it a failed one takes the place of a good one. */
  #wait(kept: KeptTrace): void {
    const content = contentOf(kept);
    if (this.#waiting.length < MAX_WAITING && this.#waitingContent + content <= MAX_WAITING_CONTENT) {
      this.#waiting.push(kept);
      this.#waitingContent += content;
      return;
    }
    this.#left.inc({});
    if (kept.status < 400) return;
    const at = this.#waiting.findIndex(({ status }) => status < 400);
    const good = this.#waiting[at];
    if (good === undefined) return;
    const instead = this.#waitingContent + content - contentOf(good);
    if (instead > MAX_WAITING_CONTENT) return;
    this.#waiting[at] = kept;
    this.#waitingContent = instead;
  }

  #waits(list: KeptTrace[]): void {
    this.#waiting = list;
    this.#waitingContent = list.reduce((sum, kept) => sum + contentOf(kept), 0);
  }

  /** Of what is in memory. */
  recentOne(id: string): TraceRecord | undefined {
    const kept = this.#ring.get(id) ?? this.#waiting.find((waiting) => waiting.id === id);
    return kept && toRecord(kept);
  }

  async get(id: string): Promise<TraceRecord | undefined> {
    return this.recentOne(id) ?? this.#deps.cold.readTrace(id);
  }

  /** The newest in memory, one more than a page: whoever makes a page of them sees that there is another. */
  recent(query: TraceQuery): TraceRecord[] {
    const kept = this.#recent(query).sort(newestFirst);
    return kept.slice(0, query.limit + 1).map(toRecord);
  }

  /** Newest first: what memory and the store hold, and what the memories of others do (`elsewhere`), each trace once. */
  async list(query: TraceQuery, elsewhere: readonly TraceRecord[] = []): Promise<Page<TraceRecord>> {
    const { limit } = query;
    const stored = this.#deps.keepDays() > 0 ? await this.#deps.cold.listTraces(query) : { data: [], nextCursor: undefined };
    const known = new Map([...elsewhere, ...stored.data].map((record) => [record.id, record]));
    const merged: { id: string; startedAt: number; record?: TraceRecord; kept?: KeptTrace }[] = [
      ...[...known.values()].map((record) => ({ id: record.id, startedAt: record.startedAt, record })),
      ...this.#recent(query).flatMap((kept) => (known.has(kept.id) ? [] : [{ id: kept.id, startedAt: kept.startedAt, kept }])),
    ];
    merged.sort(newestFirst);
    const data = merged.slice(0, limit).flatMap(({ record, kept }) => record ?? (kept ? [toRecord(kept)] : []));
    const last = data.at(-1);
    const more = merged.length > limit || stored.nextCursor !== undefined;
    return { data, nextCursor: more && last ? toCursor([last.startedAt, last.id]) : undefined };
  }

  #recent(query: TraceQuery): KeptTrace[] {
    const after = query.cursor === undefined ? undefined : toPlace(query.cursor);
    return [...new Set([...this.#ring.values(), ...this.#waiting])].filter((kept) => matches(kept, query) && isAfter(kept, after));
  }

  /** Deletes what is older than `trace.keep_days`. */
  async sweep(): Promise<void> {
    const days = this.#deps.keepDays();
    if (days <= 0) return;
    try {
      const deleted = await this.#deps.cold.deleteTracesBefore(this.#deps.environment.now() - days * DAY_MS);
      if (deleted > 0) this.#deps.log.info({ deleted, keep_days: days }, 'old traces deleted');
    } catch (err) {
      this.#deps.log.warn({ err }, 'old traces could not be deleted; it will be tried again');
    }
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    await this.#flushing;
    while (this.#waiting.length > 0 && (await this.#write(IDLE_BATCH)));
  }

  #tick(): Promise<void> {
    const busy = this.#arrived > IDLE_RATE;
    this.#arrived = 0;
    this.#flushing ??= this.#write(busy ? BUSY_BATCH : IDLE_BATCH).then(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  /** False: the store did not take them, and they wait on. */
  async #write(most: number): Promise<boolean> {
    const batch = this.#waiting.slice(0, most);
    if (batch.length === 0) return true;
    this.#waits(this.#waiting.slice(most));
    try {
      await this.#deps.cold.writeTraces(batch.map(toRecord));
      return true;
    } catch (err) {
      this.#deps.log.warn({ err, traces: batch.length }, 'traces could not be stored; they will be tried again');
      this.#waits([...batch, ...this.#waiting].slice(0, MAX_WAITING));
      return false;
    }
  }
}

// Counted once: a stored answer is whole when its trace is added.
const counted = new WeakMap<object, number>();

/** Characters of what was captured. */
function contentOf({ trace }: KeptTrace): number {
  const content = trace instanceof ExchangeTrace ? trace.content : undefined;
  if (content === undefined) return 0;
  const known = counted.get(content) ?? charactersIn(content);
  counted.set(content, known);
  return known;
}
function charactersIn(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 8;
  return Object.entries(value).reduce((sum, [name, part]) => sum + name.length + charactersIn(part), 0);
}

function newestFirst(a: { id: string; startedAt: number }, b: { id: string; startedAt: number }): number {
  return b.startedAt - a.startedAt || (a.id < b.id ? 1 : -1);
}

/** The place of the last trace of a page, as the stores write it: pages go on whether memory or a store gave the last one. */
function toPlace(cursor: string): { startedAt: number; id: string } | undefined {
  const place = fromCursor(cursor);
  return place?.length === 2 ? { startedAt: Number(place[0]), id: String(place[1]) } : undefined;
}

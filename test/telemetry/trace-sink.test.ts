import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TraceSink, type TraceStore } from '../../src/app/trace-sink.ts';
import type { TraceRecord } from '../../src/contracts/cold-store.ts';
import type { Ending } from '../../src/contracts/ending.ts';
import type { Exchange } from '../../src/contracts/exchange.ts';
import type { KeptTrace } from '../../src/telemetry/kept-trace.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { ExchangeTrace } from '../../src/telemetry/trace.ts';
import { keepLog, type LogLine } from '../app-kit.ts';

const DAY = 86_400_000;

/** Keeps records as a store does; `away` makes it refuse. */
class Store implements TraceStore {
  readonly records = new Map<string, TraceRecord>();
  away = false;
  deletedBefore: number | undefined;
  async writeTraces(traces: readonly TraceRecord[]): Promise<void> {
    if (this.away) throw new Error('away');
    for (const trace of traces) this.records.set(trace.id, structuredClone(trace));
  }
  readTrace = async (id: string): Promise<TraceRecord | undefined> => this.records.get(id);
  async listTraces({
    limit,
    cursor,
    status,
  }: {
    limit: number;
    cursor?: string;
    status?: number;
  }): Promise<{ data: TraceRecord[]; nextCursor: string | undefined }> {
    const place = cursor === undefined ? undefined : (JSON.parse(Buffer.from(cursor, 'base64url').toString()) as [number, string]);
    const sorted = [...this.records.values()]
      .filter((record) => status === undefined || record.status === status)
      .filter(({ startedAt, id }) => place === undefined || startedAt < place[0] || (startedAt === place[0] && id < place[1]))
      .sort((a, b) => b.startedAt - a.startedAt || (a.id < b.id ? 1 : -1));
    const data = sorted.slice(0, limit);
    const last = data.at(-1);
    return { data, nextCursor: sorted.length > limit && last ? Buffer.from(JSON.stringify([last.startedAt, last.id])).toString('base64url') : undefined };
  }
  async deleteTracesBefore(at: number): Promise<number> {
    this.deletedBefore = at;
    return 0;
  }
}

function ending(id: string, startedAt: number, status = 200, keep_days = 14, { sample = 1, degraded = false } = {}): Ending {
  const exchange = {
    trace: new ExchangeTrace(id, startedAt, 0),
    principal: { id: 'key', service: 'support' },
    caller: { service: 'support', project: 'shop' },
    route: { rule: 'default', model: 'fast' },
    ask: {},
    wants: { form: 'openai-chat', stream: false },
    calls: [],
    toolCalls: [],
    answer: { facts: degraded ? { degraded } : {} },
    config: { trace: { keep_days, sample } },
  };
  // Of an exchange only what a trace is made of.
  const part: Pick<Exchange, 'trace'> = exchange;
  return {
    exchange: part as Exchange,
    traceId: id,
    requestId: id,
    callerRequestId: undefined,
    method: 'POST',
    path: '/v1/chat',
    status,
    error: undefined,
    durationMs: 5,
    overheadMs: 1,
    firstTokenMs: undefined,
  };
}

function sink(store: Store, exported?: (trace: KeptTrace) => void): { sink: TraceSink; lines: LogLine[]; text(): Promise<string> } {
  const lines: LogLine[] = [];
  const metrics = createMetrics();
  const deps = { cold: store, log: keepLog(lines), metrics, environment: { now: () => 100 * DAY, uuid: () => '', random: () => 0 }, keepDays: () => 14 };
  return { sink: new TraceSink({ ...deps, exported }), lines, text: () => metrics.text() };
}

describe('traces of requests that are over', () => {
  it('are found at once, and in the store once they are flushed', async () => {
    const store = new Store();
    const { sink: traces } = sink(store);
    traces.add(ending('a', 1));
    assert.equal((await traces.get('a'))?.id, 'a');
    assert.equal(store.records.size, 0);
    await traces.close();
    assert.equal(store.records.get('a')?.service, 'support');
  });

  it('are listed newest first, each once, whether memory or the store has them, page by page', async () => {
    const store = new Store();
    const { sink: traces } = sink(store);
    const early = sink(store);
    for (let at = 0; at < 30; at++) early.sink.add(ending(`old-${at}`, at));
    await early.sink.close();
    for (let at = 0; at < 30; at++) traces.add(ending(`new-${at}`, 20 + at));
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await traces.list({ limit: 7, ...(cursor ? { cursor } : {}) });
      seen.push(...page.data.map(({ id }) => id));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    assert.equal(seen.length, 60);
    assert.equal(new Set(seen).size, 60);
    assert.equal(seen[0], 'new-29');
    assert.equal(seen.at(-1), 'old-0');
    await traces.close();
  });

  it('wait for a store that is away, and are stored when it is back', async () => {
    const store = new Store();
    const { sink: traces, lines } = sink(store);
    store.away = true;
    traces.add(ending('a', 1));
    await new Promise((resolve) => setTimeout(resolve, 1100));
    assert.equal(lines.filter(({ level }) => level === 'warn').length, 1);
    assert.equal((await traces.get('a'))?.id, 'a');
    store.away = false;
    await traces.close();
    assert.ok(store.records.has('a'));
  });

  it('beyond what may wait the failed ones stay, and what is left out is counted', async () => {
    const store = new Store();
    const { sink: traces, text } = sink(store);
    for (let at = 0; at < 5000; at++) traces.add(ending(`good-${at}`, at));
    for (let at = 0; at < 10; at++) traces.add(ending(`bad-${at}`, 5000 + at, 502));
    for (let at = 0; at < 10; at++) traces.add(ending(`late-${at}`, 6000 + at));
    await traces.close();
    assert.equal(store.records.size, 5000);
    assert.ok(store.records.has('bad-9') && !store.records.has('late-0'));
    assert.match(await text(), /^hermes_traces_not_stored_total 20$/m);
  });

  it('hold captured content in memory up to a bound, the newest for views and the oldest for the store', async () => {
    const store = new Store();
    store.away = true;
    const { sink: traces, text } = sink(store);
    const content = (id: string, at: number): Ending => {
      const made = ending(id, at);
      const trace = made.exchange?.trace;
      if (trace instanceof ExchangeTrace) trace.content = { request: ['x'.repeat(1024 ** 2)], answer: '', hear: () => undefined, view: () => ({}) };
      return made;
    };
    for (let at = 0; at < 100; at++) traces.add(content(`t${at}`, at));
    const waiting = 100 - Number(/^hermes_traces_not_stored_total (\d+)$/m.exec(await text())?.[1]);
    assert.ok(waiting >= 60 && waiting <= 64, `${waiting} wait`);
    assert.equal((await traces.get('t99'))?.id, 't99');
    assert.equal(await traces.get('t65'), undefined, 'neither among the newest nor waiting');
    store.away = false;
    await traces.close();
    assert.equal(store.records.size, waiting);
  });

  it('are not stored under keep_days 0, and old ones are deleted', async () => {
    const store = new Store();
    const { sink: traces } = sink(store);
    traces.add(ending('a', 1, 200, 0));
    await traces.sweep();
    await traces.close();
    assert.equal(store.records.size, 0);
    assert.equal(store.deletedBefore, 86 * DAY);
  });

  it('are stored and exported as a share of the good ones, by their ids, and as all of those that went wrong', async () => {
    const store = new Store();
    const exported: string[] = [];
    const { sink: traces } = sink(store, ({ id }) => exported.push(id));
    const digits = (at: number): string => (Math.imul(at, 0x9e3779b1) >>> 0).toString(16).padStart(8, '0');
    for (let at = 0; at < 400; at++) traces.add(ending(`1ed109f5-abb8-4243-9925-0000${digits(at)}`, at, 200, 14, { sample: 0.25 }));
    traces.add(ending('1ed109f5-abb8-4243-9925-0000ffffffff', 1000, 502, 14, { sample: 0 }));
    traces.add(ending('1ed109f5-abb8-4243-9925-0001ffffffff', 1001, 200, 14, { sample: 0, degraded: true }));
    assert.ok(await traces.get(`1ed109f5-abb8-4243-9925-0000${digits(399)}`), 'the newest are all in memory');
    await traces.close();
    const good = [...store.records.keys()].length - 2;
    assert.ok(good > 70 && good < 130, `${good} of 400`);
    assert.ok(store.records.has('1ed109f5-abb8-4243-9925-0000ffffffff') && store.records.has('1ed109f5-abb8-4243-9925-0001ffffffff'));
    assert.deepEqual(exported.toSorted(), [...store.records.keys()].toSorted());
  });

  it('are not made of refused credentials', async () => {
    const store = new Store();
    const { sink: traces } = sink(store);
    traces.add({ ...ending('a', 1), exchange: undefined });
    assert.equal(await traces.get('a'), undefined);
    await traces.close();
  });
});

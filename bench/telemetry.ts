/**
 * What seeing costs: microseconds of CPU a request for spans, metrics, the log line and the kept trace; a trace for a collector; a
 * scrape of 10,000 series. `npx tsx bench/telemetry.ts`
 */
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { TraceSink, type TraceStore } from '../src/app/trace-sink.ts';
import type { Config } from '../src/contracts/config.ts';
import type { Ending } from '../src/contracts/ending.ts';
import type { Exchange, ModelCall } from '../src/contracts/exchange.ts';
import { type KeptTrace, keep } from '../src/telemetry/kept-trace.ts';
import { withoutSecrets } from '../src/telemetry/log.ts';
import { createMetrics } from '../src/telemetry/metrics.ts';
import { createOtlpSender } from '../src/telemetry/otlp-sender.ts';
import { Recorder } from '../src/telemetry/recorder.ts';
import { ExchangeTrace } from '../src/telemetry/trace.ts';

const REQUESTS = 100_000;
const STEPS = ['auth', 'idempotency', 'limits', 'session', 'store read', 'route', 'schedule', 'shadow', 'tools', 'failover', 'trim'];

const metrics = createMetrics();
const log = pino({ formatters: { log: withoutSecrets } }, pino.destination({ fd: openSync('/dev/null', 'w'), sync: false }));
const recorder = new Recorder(log, metrics);
const store: TraceStore = {
  writeTraces: () => Promise.resolve(),
  readTrace: () => Promise.resolve(undefined),
  listTraces: () => Promise.resolve({ data: [], nextCursor: undefined }),
  deleteTracesBefore: () => Promise.resolve(0),
};
const environment = { now: () => Date.now(), uuid: () => '', random: () => 0 };
const sink = new TraceSink({ cold: store, log, metrics, environment, keepDays: () => 14 });

// Only what telemetry looks at.
const config: Pick<Config, 'auth' | 'route_rules' | 'registry' | 'trace'> = {
  auth: { keys: [], signatures: [] },
  route_rules: [],
  registry: { models: new Map(), defaultModel: 'fast_model', find: () => undefined, upstreams: [] },
  trace: { capture_content: false, redact: [], sample: 1, keep_days: 14, otlp_endpoint: '' },
};
const call: ModelCall = {
  id: 'c',
  traceId: 't',
  requestId: 'r',
  startedAt: 0,
  durationMs: 20,
  firstTokenMs: 5,
  model: 'fast_model',
  upstream: 'fast_model',
  upstreamIdentity: 'x',
  provider: 'openai',
  route: 'default',
  service: 'support',
  project: 'shop',
  user: undefined,
  session: 's-1',
  key: 'support',
  outcome: 'ok',
  status: 200,
  error: undefined,
  tokens: { input: 100, cached: 10, cacheWrite: 0, output: 40, reasoning: 0 },
  estimated: false,
  answered: true,
  costNanoUsd: 1200,
  shadow: false,
};

function toEnding(trace: ExchangeTrace): Ending {
  const exchange = {
    trace,
    config,
    principal: { id: 'support', service: 'support' },
    caller: { service: 'support', project: 'shop' },
    route: { rule: 'default', model: 'fast_model' },
    ask: { sessionId: 's-1' },
    wants: { form: 'openai-chat', stream: true },
    calls: [call],
    answer: { facts: { route: 'default', model: 'fast_model', upstream: 'fast_model', attempts: 1, finishReason: 'stop' } },
  };
  const part: object = exchange;
  return {
    exchange: part as Exchange,
    traceId: trace.id,
    requestId: trace.id,
    callerRequestId: undefined,
    method: 'POST',
    path: '/v1/chat',
    status: 200,
    error: undefined,
    durationMs: 21,
    overheadMs: 1,
    firstTokenMs: 6,
  };
}

function measure(name: string, run: (at: number) => void): number {
  for (let at = 0; at < 5000; at++) run(at);
  const before = process.cpuUsage();
  for (let at = 0; at < REQUESTS; at++) run(at);
  const { user, system } = process.cpuUsage(before);
  const each = (user + system) / REQUESTS;
  process.stdout.write(`${name.padEnd(28)} ${each.toFixed(2)} µs\n`);
  return each;
}

const traces = Array.from({ length: 1000 }, (_, at) => new ExchangeTrace(`1ed109f5-abb8-4243-9925-${String(at).padStart(12, '0')}`, 0, 0));
const endings = traces.map(toEnding);
const settings: object = config;
const spans = measure('12 spans recorded', (at) => {
  const trace = new ExchangeTrace('1ed109f5-abb8-4243-9925-6893a321afe5', at, 0);
  for (const name of STEPS) trace.record(name, at, performance.now());
  trace.record('attempt', at, at + 1, { number: 1, model: 'm', upstream: 'u', outcome: 'ok', input_tokens: 1, output_tokens: 2 });
});
const counted = measure('one upstream call counted', () => recorder.called(settings as Config, call));
const ended = measure('metrics and log line', (at) => recorder.ended(settings as Config, endings[at % 1000] as Ending));
const kept = measure('trace kept', (at) => sink.add(endings[at % 1000] as Ending));
process.stdout.write(`${'together'.padEnd(28)} ${(spans + counted + ended + kept).toFixed(2)} µs a request\n`);
await sink.close();
await measureCollector();
await measureScrape();

/** With the collector's side of the connection, which is in this process, too. */
async function measureCollector(): Promise<void> {
  const collector = createServer((request, response) => request.resume().on('end', () => response.end())).listen(0, '127.0.0.1');
  await once(collector, 'listening');
  const sender = createOtlpSender(`http://127.0.0.1:${(collector.address() as AddressInfo).port}/v1/traces`, undefined);
  const batch = endings.slice(0, 64).map((ending): KeptTrace => {
    const trace = new ExchangeTrace(ending.traceId, Date.now(), 0);
    for (const [at, name] of STEPS.entries()) trace.record(name, at, at + 1);
    trace.record('attempt', 12, 20, {
      number: 1,
      model: 'm',
      upstream: 'u',
      outcome: 'ok',
      provider: 'openai',
      model_name: 'gpt-x',
      input_tokens: 1,
      output_tokens: 2,
    });
    const part: object = { ...ending.exchange, trace };
    return keep(ending, part as Exchange);
  });
  const rounds = 150;
  for (let round = 0; round < 30; round++) await sender.send(batch);
  const before = process.cpuUsage();
  for (let round = 0; round < rounds; round++) await sender.send(batch);
  const { user, system } = process.cpuUsage(before);
  const each = (user + system) / (rounds * batch.length);
  process.stdout.write(
    `${'a trace for a collector'.padEnd(28)} ${each.toFixed(2)} µs, a batch of ${batch.length} ${((each * batch.length) / 1000).toFixed(1)} ms\n`,
  );
  collector.close();
  collector.closeAllConnections();
}

async function measureScrape(): Promise<void> {
  const wide = createMetrics();
  const counter = wide.counter('wide_total', 'Wide.', ['a', 'b']);
  for (let at = 0; at < 10_000; at++) counter.inc({ a: `a${at % 100}`, b: `b${Math.floor(at / 100)}` });
  for (let round = 0; round < 20; round++) await wide.text();
  const times: number[] = [];
  for (let round = 0; round < 50; round++) {
    const start = performance.now();
    await wide.text();
    times.push(performance.now() - start);
  }
  const [median = 0, worst = 0] = [times.sort((a, b) => a - b)[25], times.at(-1)];
  process.stdout.write(`${'a scrape of 10,000 series'.padEnd(28)} ${median.toFixed(1)} ms (worst of 50: ${worst.toFixed(1)} ms)\n`);
}

/** What seeing costs: microseconds of CPU a request for spans, metrics, the log line and the kept trace. `npx tsx bench/telemetry.ts` */
import { openSync } from 'node:fs';
import { pino } from 'pino';
import { TraceSink, type TraceStore } from '../src/app/trace-sink.ts';
import type { Config } from '../src/contracts/config.ts';
import type { Ending } from '../src/contracts/ending.ts';
import type { Exchange, ModelCall } from '../src/contracts/exchange.ts';
import { withoutSecrets } from '../src/telemetry/log.ts';
import { createMetrics } from '../src/telemetry/metrics.ts';
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
  trace: { capture_content: false, keep_days: 14, otlp_endpoint: '' },
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

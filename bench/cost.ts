// npm run bench:cost: the night and peak rules of an online shop over one simulated week, beside the same week with everything on the large model.
// The product's own parts decide, price, keep the books and report; only the clock and the traffic are made up (seeded: every run is the same).

import { createAccountingRoom } from '../src/accounting/accounting-room.ts';
import { Ledger } from '../src/accounting/ledger.ts';
import { type Report, readReport } from '../src/accounting/report.ts';
import { toDollars } from '../src/accounting/report-format.ts';
import { parseReportQuery } from '../src/accounting/report-query.ts';
import { createScheduleRoom } from '../src/accounting/schedule-room.ts';
import { loadConfig } from '../src/config/load.ts';
import type { Config, Priority } from '../src/contracts/config.ts';
import type { Exchange, ModelCall, RouteDecision } from '../src/contracts/exchange.ts';
import create from '../src/stores/cold/sqljs.ts';
import { createLog } from '../src/telemetry/log.ts';
import { createMetrics } from '../src/telemetry/metrics.ts';
import { missingAbility } from '../src/upstream/capabilities.ts';
import { estimateInputTokens } from '../src/upstream/estimate.ts';
import { allows } from '../src/wire/patterns.ts';

const ZONE = 'Asia/Shanghai';
/** A Monday. */
const START = Date.parse('2026-11-30T00:00:00+08:00');
const HOUR_MS = 3_600_000;
const CALLS_IN_A_BUSY_HOUR = 400;

/** Share of the busiest hour's traffic, from midnight: people sleep, eat at noon, and shop in the evening. */
const CURVE = [18, 10, 7, 6, 5, 6, 9, 16, 34, 62, 78, 84, 72, 70, 76, 80, 78, 74, 78, 90, 100, 94, 68, 38];

interface Traffic {
  route: string;
  share: number;
  /** Mean tokens in and out: a question looks little up; a complaint has a long story and a long answer. */
  input: number;
  output: number;
  priority?: Priority;
}
/** Queries, what needs thought, and the fifth that hits no rule. */
const MIX: Traffic[] = [
  { route: 'order_query', share: 0.32, input: 700, output: 110 },
  { route: 'knowledge', share: 0.18, input: 1100, output: 160 },
  { route: 'complex_reasoning', share: 0.12, input: 2400, output: 620 },
  { route: 'complaint', share: 0.12, input: 1900, output: 420 },
  { route: 'refund_apply', share: 0.06, input: 1300, output: 220, priority: 'urgent' },
  { route: 'default', share: 0.2, input: 800, output: 180 },
];

const rules = [
  { id: 'night', hours: '02:00-08:00', except_priority: ['urgent'], model: 'fast_model' },
  { id: 'peak', hours: '09:00-22:00', except_routes: ['complex_reasoning', 'complaint', 'refund_apply'], model: 'fast_model' },
];
const configOf = (schedule: object[]): Config =>
  loadConfig({
    file: '/bench/cost.yaml',
    text: JSON.stringify({
      models: [
        { id: 'smart_model', provider: 'simulator', tier: 'high', pricing: { input_per_million: 2.5, output_per_million: 10 } },
        { id: 'fast_model', provider: 'simulator', tier: 'low', pricing: { input_per_million: 0.15, output_per_million: 0.6 } },
      ],
      cost: { timezone: ZONE, schedule },
    }),
    env: { DATABASE_URL: 'sqlite::memory:', API_KEY: 'sk-bench-5f0c1d7ab2e94d88' },
  }).config;

/** Numerical Recipes' generator: the same week on every machine. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

interface Arrival {
  at: number;
  traffic: Traffic;
  input: number;
  output: number;
}
function* week(): Generator<Arrival> {
  const random = createRandom(20_261_130);
  const size = (mean: number): number => Math.max(1, Math.round(mean * (0.4 + 1.2 * random())));
  for (let hour = 0; hour < 7 * 24; hour++) {
    // Shops are busier at the weekend.
    const busy = (CURVE[hour % 24] ?? 0) * (hour >= 5 * 24 ? 1.25 : 1);
    const calls = Math.round((busy / 100) * CALLS_IN_A_BUSY_HOUR);
    for (let i = 0; i < calls; i++) {
      const traffic = pick(random());
      yield { at: START + (hour + random()) * HOUR_MS, traffic, input: size(traffic.input), output: size(traffic.output) };
    }
  }
}

/** By shares; `point` is in [0, 1). */
function pick(point: number): Traffic {
  let passed = 0;
  for (const traffic of MIX) {
    passed += traffic.share;
    if (point < passed) return traffic;
  }
  return MIX.at(-1) as Traffic;
}

async function play(config: Config): Promise<Report> {
  const clock = { at: START, now: () => clock.at, uuid: () => crypto.randomUUID(), random: Math.random };
  const log = createLog('error', process.stderr);
  const cold = create({ url: 'sqlite::memory:', keyPrefix: '', log, metrics: createMetrics(), environment: clock });
  await cold.open();
  const ledger = new Ledger({ cold, log, environment: clock });
  const accounting = createAccountingRoom();
  accounting.onCall((call, { cost }) => ledger.add(call, cost.timezone));
  const schedule = createScheduleRoom({
    allows,
    missingAbility,
    offersTools: () => false,
    estimateTokens: estimateInputTokens,
    crossedFor: () => [],
    environment: clock,
  });
  for (const arrival of week()) {
    clock.at = arrival.at;
    const decision = await schedule.apply(toExchange(config, arrival), toDecision(arrival.traffic));
    accounting.record(toCall(arrival, decision), config);
  }
  await ledger.flush();
  const query = parseReportQuery(new URLSearchParams({ from: '2026-11-30', to: '2026-12-06', by: 'hour,route,model' }), ZONE, clock.at);
  const report = await readReport(cold, query, ZONE);
  await cold.close();
  return report;
}

function toDecision({ route }: Traffic): RouteDecision {
  return { rule: route, model: 'smart_model', tools: undefined, explicit: false };
}
/** What the schedule looks at. */
function toExchange(config: Config, { traffic }: Arrival): Exchange {
  const principal = {
    id: 'shop',
    service: 'support',
    services: [],
    project: 'shop',
    projects: [],
    admin: false,
    models: ['*'],
    tools: [],
    userLevels: [],
    priorities: [],
    passthrough: [],
  };
  const caller = { service: 'support', project: 'shop', user: undefined, userLevel: undefined, priority: traffic.priority ?? 'normal' };
  const exchange: Pick<Exchange, 'config' | 'principal' | 'caller' | 'request' | 'session'> = {
    config,
    principal,
    caller,
    request: { messages: [] },
    session: undefined,
  };
  return exchange as Exchange;
}
function toCall({ at, traffic, input, output }: Arrival, { model }: RouteDecision): ModelCall {
  return {
    id: crypto.randomUUID(),
    traceId: '',
    requestId: '',
    startedAt: at,
    durationMs: 0,
    firstTokenMs: undefined,
    model,
    upstream: model,
    upstreamIdentity: '',
    provider: 'simulator',
    route: traffic.route,
    service: 'support',
    project: 'shop',
    user: undefined,
    session: undefined,
    key: 'shop',
    outcome: 'ok',
    status: 200,
    error: undefined,
    tokens: { input, cached: 0, cacheWrite: 0, output, reasoning: 0 },
    estimated: false,
    answered: true,
    costNanoUsd: undefined,
    shadow: false,
  };
}

const PERIODS = [
  { name: 'night 02-08', holds: (hour: number) => hour >= 2 && hour < 8 },
  { name: 'peak  09-22', holds: (hour: number) => hour >= 9 && hour < 22 },
  { name: 'rest', holds: (hour: number) => hour < 2 || hour === 8 || hour >= 22 },
];
const localHour = (hour: unknown): number => new Date(Date.parse(String(hour)) + 8 * HOUR_MS).getUTCHours();
const sum = (report: Report, holds: (row: Report['rows'][number]) => boolean): bigint =>
  report.rows.filter(holds).reduce((total, row) => total + row.cost_nano_usd, 0n);
const saved = (before: bigint, after: bigint): string => `${(100 * (1 - Number(after) / Number(before))).toFixed(1)} %`;

const before = await play(configOf([]));
const after = await play(configOf(rules));
const line = (name: string, holds: (row: Report['rows'][number]) => boolean): string => {
  const [a, b] = [sum(before, holds), sum(after, holds)];
  return `${name.padEnd(20)}${`$${toDollars(a).slice(0, -7)}`.padStart(12)}${`$${toDollars(b).slice(0, -7)}`.padStart(12)}${saved(a, b).padStart(10)}`;
};
const cheap = after.rows.filter(({ group }) => group.model === 'fast_model').reduce((calls, row) => calls + row.calls, 0);
process.stdout.write(
  [
    `One week of ${before.total.calls} calls; all on smart_model ($2.50 / $10 a million tokens), and with fast_model ($0.15 / $0.60) by the night and peak rules.`,
    '',
    `${''.padEnd(20)}${'all large'.padStart(12)}${'scheduled'.padStart(12)}${'saved'.padStart(10)}`,
    ...PERIODS.map(({ name, holds }) => line(name, ({ group }) => holds(localHour(group.hour)))),
    ...MIX.map(({ route }) => line(route, ({ group }) => group.route === route)),
    line('total', () => true),
    '',
    `${((100 * cheap) / after.total.calls).toFixed(1)} % of the calls were served by the cheap model; what needs thought by day stayed where it was.`,
    '',
  ].join('\n'),
);

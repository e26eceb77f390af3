import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { CommandLine } from '../parts/command-line.ts';
import type { Fleet } from '../parts/fleet.ts';
import { CHAT, chatBody, load } from '../parts/loads.ts';
import type { RateFindings, RatePlan } from '../parts/open-loop.ts';
import { cpuSeconds } from '../parts/process-usage.ts';
import { alternate, middle, type Side, table } from '../parts/rounds.ts';
import type { Scenario, Section } from '../parts/scenario.ts';
import { root, type Server } from '../parts/servers.ts';
import { median } from '../parts/statistics.ts';
import type { Load } from '../parts/wrk.ts';

const run = promisify(execFile);
const LOUD_KEY = 'sk-bench-loud-1b6a7c';

interface Measured extends RateFindings {
  cpuMicros: number;
}

/** So many requests a second, whether or not the earlier ones are answered. */
function atRate(rate: number, stamps: boolean): (server: Server, load: Load, seconds: number) => Promise<Measured> {
  return async (server, { path, headers, body }, seconds) => {
    const before = cpuSeconds(server.pid);
    const plan: RatePlan = { port: server.port, path, headers, body, rate, seconds, stamps };
    const { stdout } = await run(process.execPath, ['--import', 'tsx', 'bench/parts/open-loop.ts', JSON.stringify(plan)], { cwd: root });
    const said = JSON.parse(stdout) as RateFindings;
    return { ...said, cpuMicros: ((cpuSeconds(server.pid) - before) * 1e6) / (rate * seconds) };
  };
}

async function sides(fleet: Fleet, upstream: 'fixed' | 'paced', body: string, prefix: string): Promise<Side<Load>[]> {
  const to = fleet.upstreams[upstream];
  const carried = load(body, { path: `${prefix}${CHAT}` });
  const portkey = upstream === 'fixed' ? await fleet.portkey() : undefined;
  const custom = { 'x-portkey-provider': 'openai', 'x-portkey-custom-host': `http://127.0.0.1:${to.port}${prefix}/v1` };
  const others: Side<Load>[] = fleet.quick
    ? []
    : [
        { label: 'http-proxy-3', server: await fleet.httpProxy(to), load: carried },
        { label: 'nginx', server: await fleet.nginx(to), load: carried },
      ];
  return [
    { label: 'straight to the upstream', server: to, load: carried },
    { label: 'bare proxy', server: await fleet.bare(to), load: carried },
    ...others,
    { label: 'hermes', server: await fleet.hermes(), load: load(body) },
    ...(portkey ? [{ label: 'portkey', server: portkey, load: load(body, { headers: custom }), mayFail: true }] : []),
  ];
}

const added = (rounds: readonly Measured[], straight: readonly Measured[], pick: (m: Measured) => number): string =>
  signed(median(rounds.map((measured, at) => pick(measured) - pick(straight[at] ?? measured))));
const known = (ms: number | null): number => ms ?? Number.NaN;
const signed = (ms: number): string => `${ms < 0 ? '−' : '+'}${Math.abs(ms).toFixed(2)}`;

/** The same request over and over: hermes asks its upstream, or gives the answer that it has kept. */
async function cacheSides(fleet: Fleet): Promise<Side<Load>[]> {
  const sent = load(chatBody({ temperature: 0 }));
  return [
    { label: 'hermes asks', server: await fleet.hermes(), load: sent },
    { label: 'hermes has it in its cache', server: await fleet.hermes({ config: { cache: {} } }), load: sent },
  ];
}

async function json(title: string, settings: CommandLine, rate: number, compared: readonly Side<Load>[]): Promise<Section> {
  const results = await alternate(title, compared, settings, atRate(rate, false));
  const straight = [...results.values()][0] ?? [];
  const rows = [...results].map(([label, rounds]) => {
    const of = (pick: (m: Measured) => number): string => middle(rounds, pick).toFixed(2);
    const [p50, p90, p99] = [(m: Measured) => known(m.ms.p50), (m: Measured) => known(m.ms.p90), (m: Measured) => known(m.ms.p99)];
    const plus = rounds === straight ? ['', '', ''] : [p50, p90, p99].map((pick) => added(rounds, straight, pick));
    return [label, of(p50), of(p90), of(p99), ...plus, middle(rounds, (m) => m.cpuMicros).toFixed(0), middle(rounds, (m) => m.errors).toFixed(0)];
  });
  return { title, lines: table(['', 'p50 ms', 'p90 ms', 'p99 ms', 'added p50', 'added p90', 'added p99', 'CPU µs/request', 'errors'], rows) };
}

async function events(fleet: Fleet, settings: CommandLine, rate: number): Promise<Section> {
  const title = `SSE chat at ${rate} requests/s, 50 events, each in a packet of its own`;
  const body = chatBody({ model: 'events_model', stream: true });
  const results = await alternate(title, await sides(fleet, 'paced', body, '/events/50/0'), settings, atRate(rate, true));
  const straight = [...results.values()][0] ?? [];
  const rows = [...results].map(([label, rounds]) => {
    const of = (pick: (m: Measured) => number): string => middle(rounds, pick).toFixed(2);
    const [p50, p99, most] = [(m: Measured) => known(m.ages.p50), (m: Measured) => known(m.ages.p99), (m: Measured) => known(m.ages.max)];
    const plus = rounds === straight ? ['', ''] : [p50, p99].map((pick) => added(rounds, straight, pick));
    return [label, of(p50), of((m) => known(m.ages.p90)), of(p99), of(most), ...plus, of((m) => known(m.ms.p99)), middle(rounds, (m) => m.errors).toFixed(0)];
  });
  return {
    title: `${title}: how long an event is under way`,
    lines: table(['', 'p50 ms', 'p90 ms', 'p99 ms', 'longest', 'added p50', 'added p99', 'whole answer p99', 'errors'], rows),
  };
}

const QUOTA = 25;
const LOUD = 20;
/** One service within its means, alone and while another sends twenty times what it may. */
async function neighbours(fleet: Fleet, settings: CommandLine): Promise<Section> {
  const title = `JSON chat of one service at 100 requests/s, while another sends ${LOUD * QUOTA} of ${QUOTA}`;
  const server = await fleet.hermes({
    config: {
      auth: {
        keys: [
          { id: 'quiet', key_env: 'API_KEY', service: 'quiet' },
          { id: 'loud', key_env: 'LOUD_KEY', service: 'loud' },
        ],
      },
      limits: [{ per: 'service', match: { service: 'loud' }, requests_per_minute: QUOTA * 60, burst: QUOTA }],
    },
    env: { LOUD_KEY },
  });
  const [quiet, loud] = [load(chatBody()), load(chatBody(), { headers: { authorization: `Bearer ${LOUD_KEY}` } })];
  const rounds = { alone: [] as Measured[], beside: [] as Measured[] };
  let refused = 0;
  await atRate(500, false)(server, quiet, settings.warmUp.seconds * 2);
  for (let round = 0; round < settings.rounds; round++) {
    rounds.alone.push(await atRate(100, false)(server, quiet, settings.seconds));
    const [beside, others] = await Promise.all([
      atRate(100, false)(server, quiet, settings.seconds),
      atRate(LOUD * QUOTA, false)(server, loud, settings.seconds),
    ]);
    rounds.beside.push(beside);
    refused += others.errors;
  }
  const p99 = (m: Measured): number => known(m.ms.p99);
  const row = (label: string, of: Measured[]): string[] => [label, ...[(m: Measured) => known(m.ms.p50), p99].map((pick) => middle(of, pick).toFixed(2))];
  const times = median(rounds.beside.map((measured, at) => p99(measured) / p99(rounds.alone[at] ?? measured))).toFixed(2);
  const rows = [
    [...row('alone', rounds.alone), '', ''],
    [...row('beside', rounds.beside), times, String(refused)],
  ];
  return { title, lines: table(['', 'p50 ms', 'p99 ms', 'p99 to alone', "refused of the other's"], rows) };
}

/** Latency where nobody is at his limit. */
export const fixedRate: Scenario[] = [
  {
    name: 'rate',
    title: 'JSON chat at 1,000 requests/s',
    quick: true,
    main: true,
    run: async (fleet, settings) => json('JSON chat at 1000 requests/s', settings, 1000, await sides(fleet, 'fixed', chatBody(), '')),
  },
  {
    name: 'rate-cache',
    title: 'JSON chat out of the answer cache at 300 requests/s',
    quick: false,
    main: false,
    run: async (fleet, settings) => json('JSON chat out of the answer cache at 300 requests/s', settings, 300, await cacheSides(fleet)),
  },
  { name: 'rate-neighbour', title: 'one service while another sends twenty times its quota', quick: false, main: false, run: neighbours },
  { name: 'rate-sse', title: 'SSE chat at 200 requests/s', quick: false, main: false, run: (fleet, settings) => events(fleet, settings, 200) },
];

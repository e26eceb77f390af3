import type { CommandLine } from '../parts/command-line.ts';
import type { Fleet } from '../parts/fleet.ts';
import { rules } from '../parts/hermes-config.ts';
import { CHAT, chatBody, fillSessions, IN_TURN, largeBody, load, turnBody } from '../parts/loads.ts';
import { alternate, middle, ratio, type Side, table } from '../parts/rounds.ts';
import type { Scenario, Section } from '../parts/scenario.ts';
import { type Load, type Measured, measure } from '../parts/wrk.ts';

type WrkSide = Side<Load>;
interface Contest {
  name: string;
  title: string;
  quick?: boolean;
  main?: boolean;
  chart?: boolean;
  sides(fleet: Fleet): Promise<WrkSide[]>;
}

/** Those who carry bytes. `prefix`: before the path, for whoever cannot choose an upstream by model. */
async function carriers(fleet: Fleet, upstream: 'fixed' | 'paced', body: string, prefix = ''): Promise<WrkSide[]> {
  const to = fleet.upstreams[upstream];
  const sent = load(body, { path: `${prefix}${CHAT}` });
  const floor = { label: 'bare proxy', server: await fleet.bare(to), load: sent };
  if (fleet.quick) return [floor];
  return [floor, { label: 'http-proxy-3', server: await fleet.httpProxy(to), load: sent }, { label: 'nginx', server: await fleet.nginx(to), load: sent }];
}
async function bare(fleet: Fleet, body: string, prefix = '', upstream: 'fixed' | 'paced' = 'fixed'): Promise<WrkSide[]> {
  return (await carriers(fleet, upstream, body, prefix)).slice(0, 1);
}
async function hermes(fleet: Fleet, body: string): Promise<WrkSide> {
  return { label: 'hermes', server: await fleet.hermes(), load: load(body) };
}
/** Its errors are told, not hidden: it closes connections under load. */
async function portkey(fleet: Fleet, body: string, upstream: 'fixed' | 'paced', path: string, provider = 'openai'): Promise<WrkSide[]> {
  const server = await fleet.portkey();
  const host = `http://127.0.0.1:${fleet.upstreams[upstream].port}${path}`;
  return server
    ? [{ label: 'portkey', server, mayFail: true, load: load(body, { headers: { 'x-portkey-provider': provider, 'x-portkey-custom-host': host } }) }]
    : [];
}

/** The gateway with sessions of 50 messages beside the bare proxy, that knows of none. */
async function sessions(fleet: Fleet, storage: 'memory' | 'redis', more: object, floor: WrkSide[]): Promise<WrkSide[]> {
  const env: Record<string, string> = storage === 'redis' ? { REDIS_URL: await fleet.redisUrl() } : {};
  const server = await fleet.hermes({
    config: { session: { storage: { hot_backend: storage, cold_backend: 'sqlite' } } },
    env,
    name: `hermes, sessions in ${storage}`,
  });
  await fillSessions(server);
  return [...floor, { label: storage === 'memory' ? 'hermes with sessions' : 'hermes with Redis', server, load: load(turnBody(more), { lua: IN_TURN }) }];
}

const JSON_BODY = chatBody();
const SSE_BODY = chatBody({ model: 'stream_model', stream: true });
const EVENTS_BODY = chatBody({ model: 'events_model', stream: true });
const EVENTS_PATH = '/events/50/0';

const CONTESTS: Contest[] = [
  {
    name: 'json',
    main: true,
    title: 'JSON chat',
    quick: true,
    chart: true,
    sides: async (fleet) => [
      ...(await carriers(fleet, 'fixed', JSON_BODY)),
      await hermes(fleet, JSON_BODY),
      ...(await portkey(fleet, JSON_BODY, 'fixed', '/v1')),
    ],
  },
  {
    name: 'sse',
    main: true,
    title: 'SSE chat, 50 events in one packet',
    quick: true,
    chart: true,
    sides: async (fleet) => [
      ...(await carriers(fleet, 'fixed', SSE_BODY, '/sse')),
      await hermes(fleet, SSE_BODY),
      ...(await portkey(fleet, SSE_BODY, 'fixed', '/sse/v1')),
    ],
  },
  {
    name: 'sse-events',
    main: true,
    title: 'SSE chat, 50 events, each in a packet of its own',
    quick: true,
    chart: true,
    sides: async (fleet) => [
      ...(await carriers(fleet, 'paced', EVENTS_BODY, EVENTS_PATH)),
      await hermes(fleet, EVENTS_BODY),
      ...(await portkey(fleet, EVENTS_BODY, 'paced', `${EVENTS_PATH}/v1`)),
    ],
  },
  {
    name: 'body-100k',
    title: 'JSON chat, a body of 100 kB',
    chart: true,
    sides: async (fleet) => {
      const body = largeBody(100_000);
      return [...(await carriers(fleet, 'paced', body, '/whole')), await hermes(fleet, body)];
    },
  },
  {
    name: 'body-5m',
    title: 'JSON chat, a body of 5 MB',
    sides: async (fleet) => {
      const body = largeBody(5_000_000);
      const few = ({ load: sent, ...side }: WrkSide): WrkSide => ({ ...side, load: { ...sent, connections: 4 } });
      return [...(await carriers(fleet, 'paced', body, '/whole')), await hermes(fleet, body)].map(few);
    },
  },
  {
    name: 'anthropic',
    title: 'JSON chat, translated for an Anthropic upstream (the bare proxy: OpenAI)',
    sides: async (fleet) => [
      ...(await bare(fleet, JSON_BODY)),
      await hermes(fleet, chatBody({ model: 'claude_model' })),
      ...(await portkey(fleet, chatBody({ model: 'claude_model', max_tokens: 1000 }), 'fixed', '/anthropic/v1', 'anthropic')),
    ],
  },
  {
    name: 'anthropic-sse',
    title: 'SSE chat, translated for an Anthropic upstream, 50 events in one packet (the bare proxy: OpenAI)',
    sides: async (fleet) => [...(await bare(fleet, SSE_BODY, '/sse')), await hermes(fleet, chatBody({ model: 'claude_stream_model', stream: true }))],
  },
  {
    name: 'rules',
    title: 'JSON chat, 2,000 rules',
    sides: async (fleet) => [
      ...(await bare(fleet, JSON_BODY)),
      {
        label: 'hermes with 2,000 rules',
        server: await fleet.hermes({ config: { route_rules: rules(2000) }, name: 'hermes, 2,000 rules' }),
        load: load(JSON_BODY),
      },
    ],
  },
  {
    name: 'session',
    title: 'JSON chat in a session of 50 messages, in memory',
    sides: async (fleet) => sessions(fleet, 'memory', {}, await bare(fleet, JSON_BODY)),
  },
  {
    name: 'session-redis',
    title: 'JSON chat in a session of 50 messages, in Redis',
    sides: async (fleet) => sessions(fleet, 'redis', {}, await bare(fleet, JSON_BODY)),
  },
  {
    name: 'session-sse',
    main: true,
    title: 'SSE chat in a session, 50 events in one packet',
    sides: async (fleet) => sessions(fleet, 'memory', { model: 'stream_model', stream: true }, await bare(fleet, SSE_BODY, '/sse')),
  },
  {
    name: 'session-sse-events',
    main: true,
    title: 'SSE chat in a session, 50 events, each in a packet of its own',
    sides: async (fleet) => sessions(fleet, 'memory', { model: 'events_model', stream: true }, await bare(fleet, EVENTS_BODY, EVENTS_PATH, 'paced')),
  },
  {
    name: 'workers',
    title: 'JSON chat, one worker and two (Redis and PostgreSQL; a second core must be free)',
    sides: async (fleet) => {
      const env = { REDIS_URL: await fleet.redisUrl(), DATABASE_URL: await fleet.databaseUrl() };
      const made = async (workers: number): Promise<WrkSide> => {
        const config = { server: { workers }, session: { storage: { hot_backend: 'redis', cold_backend: 'postgres' } } };
        const label = workers === 1 ? 'one worker' : `${workers} workers`;
        return { label, server: await fleet.hermes({ config, env, name: label }), load: load(JSON_BODY) };
      };
      return [await made(1), await made(2)];
    },
  },
];

const HEAD = ['', 'requests/s', 'of the first', 'p50 ms', 'p90 ms', 'p99 ms', 'CPU µs/request', 'of the first', 'RSS MB', 'errors'];

export function toSection(title: string, results: ReadonlyMap<string, Measured[]>, chart = false): Section {
  const first = [...results.values()][0] ?? [];
  const rows = [...results].map(([label, rounds]) => {
    const of = (pick: (measured: Measured) => number, digits = 2): string => middle(rounds, pick).toFixed(digits);
    const to = (pick: (measured: Measured) => number): string => ratio(rounds, first, pick).toFixed(2);
    return [
      label,
      of((m) => m.requestsPerSecond, 0),
      to((m) => m.requestsPerSecond),
      of((m) => m.p50Ms),
      of((m) => m.p90Ms),
      of((m) => m.p99Ms),
      of((m) => m.cpuMicros, 0),
      to((m) => m.cpuMicros),
      of((m) => m.rssMb, 0),
      of((m) => m.errors, 0),
    ];
  });
  const bars = [...results].map(([label, rounds]) => ({ label, ratio: ratio(rounds, first, (m) => m.requestsPerSecond) }));
  return { title, lines: table(HEAD, rows), ...(chart ? { bars } : {}) };
}

/** Contests later in the run are theirs as well; what only one needed is ended, with the memory that it has taken. */
const stays = new Set(['bare proxy', 'http-proxy-3', 'nginx', 'hermes', 'portkey', 'hermes with sessions']);

async function run({ title, chart = false, sides }: Contest, fleet: Fleet, settings: CommandLine): Promise<Section> {
  const contestants = await sides(fleet);
  const results = await alternate(title, contestants, settings, measure);
  await fleet.retire(contestants.flatMap(({ label, server }) => (stays.has(label) ? [] : [server])));
  return toSection(title, results, chart);
}

/** As many requests as it takes, 32 connections. */
export const saturation: Scenario[] = CONTESTS.map((contest) => ({
  name: contest.name,
  title: contest.title,
  quick: contest.quick ?? false,
  main: contest.main ?? false,
  run: (fleet, settings) => run(contest, fleet, settings),
}));

/**
 * What an option costs: hermes with it beside hermes without it, A B A B in one run, medians of ratios. `npx tsx bench/options.ts [NAME …]`
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startRedis } from '../test/services.ts';
import { freePort, type Server, scratch, start, startNginx, stopAll } from './parts/servers.ts';
import { hermesConfig, KEY } from './parts/subjects.ts';
import { type Load, type Measured, measure, median } from './parts/wrk.ts';

const ROUNDS = 5;
const SECONDS = 3;
const WARM_UP_SECONDS = 10;
/** Enough that no two requests in flight are turns of one session. */
const SESSIONS = 200;
const HISTORY_TURNS = 25;

const nginx = await startNginx();
const redis = await startRedis();
const wanted = process.argv.slice(2);

const question = `Where is my order 20240515 now? ${'It was to arrive yesterday and I have not heard a thing. '.repeat(6)}`;
const system = { role: 'system', content: 'You are the assistant of an online shop. Answer briefly, in the language of the question.' };
const body = (more: object = {}): string => JSON.stringify({ model: 'auto', messages: [system, { role: 'user', content: question }], ...more });
const load = (text: string, lua?: string): Load => ({
  path: '/v1/chat/completions',
  body: text,
  headers: { 'content-type': 'application/json', authorization: `Bearer ${KEY}` },
  connections: 32,
  seconds: SECONDS,
  ...(lua ? { lua } : {}),
});
/** Each request is the next session's turn. */
const inTurn = `local number = 0
request = function()
  number = (number + 1) % ${SESSIONS}
  wrk.headers["x-hermes-session-id"] = "bench-" .. number
  return wrk.format()
end`;

interface Option {
  name: string;
  title: string;
  without: { config?: object; env?: Record<string, string>; load?: Load };
  with: { config?: object; env?: Record<string, string>; load?: Load; history?: boolean };
}
const base = hermesConfig(nginx) as { models: { id: string }[] };
const failover = {
  strategy: 'weighted_round_robin',
  upstreams: [
    { target: 'first', weight: 70 },
    { target: 'second', weight: 30 },
  ],
};
const pair = base.models.map((model) => (model.id === 'bench_model' ? { ...model, failover } : model));
const copies = ['first', 'second'].map((id) => ({ ...base.models[0], id }));
const session = { config: { session: { storage: { hot_backend: 'memory', cold_backend: 'sqlite' } } }, load: load(body(), inTurn), history: true };
const OPTIONS: Option[] = [
  { name: 'session', title: 'A session of 50 messages, in memory', without: {}, with: session },
  {
    name: 'session-redis',
    title: 'A session of 50 messages, in Redis',
    without: {},
    with: { ...session, config: { session: { storage: { hot_backend: 'redis', cold_backend: 'sqlite' } } }, env: { REDIS_URL: redis.url } },
  },
  {
    name: 'failover',
    title: 'Two upstreams and failover, nothing fails',
    without: { config: { models: [...base.models, ...copies] } },
    with: { config: { models: [...pair, ...copies] } },
  },
  { name: 'limits', title: 'Three limits', without: { config: { limits: [] } }, with: {} },
  {
    name: 'guard',
    title: 'A guard against personal data',
    without: {},
    with: {
      config: {
        guards: [
          { id: 'people', kind: 'pii', action: 'redact' },
          { id: 'keys', kind: 'secrets', action: 'redact' },
        ],
      },
    },
  },
  { name: 'log', title: 'Log lines and stored traces', without: { config: { log: { level: 'silent' }, trace: { keep_days: 0 } } }, with: {} },
];

async function startHermes(name: string, { config = {}, env = {} }: { config?: object; env?: Record<string, string> }): Promise<Server> {
  const folder = scratch();
  const port = await freePort();
  const file = join(folder, 'hermes.json');
  writeFileSync(file, JSON.stringify({ ...base, ...config }));
  const all = { API_KEY: KEY, UP_KEY: 'sk-upstream', DATABASE_URL: `sqlite:///${folder}/hermes.db`, ...env };
  return start(name, process.execPath, ['dist/src/main.js', 'serve', '--config', file, '--port', String(port), '--host', '127.0.0.1'], port, all);
}

/** Every session gets its past. */
async function fill(server: Server): Promise<void> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${KEY}` };
  const talk = async (number: number): Promise<void> => {
    for (let turn = 0; turn < HISTORY_TURNS; turn++) {
      const response = await fetch(`http://127.0.0.1:${server.port}/v1/chat/completions`, {
        method: 'POST',
        headers: { ...headers, 'x-hermes-session-id': `bench-${number}` },
        body: body(),
      });
      if (response.status !== 200) throw new Error(`a session could not be filled: ${await response.text()}`);
      await response.arrayBuffer();
    }
  };
  for (let from = 0; from < SESSIONS; from += 20) await Promise.all(Array.from({ length: 20 }, (_, index) => talk(from + index)));
}

process.stdout.write(
  '| | without: requests/s, CPU µs | with: requests/s, CPU µs | throughput, with to without | CPU, with to without |\n| --- | --- | --- | --- | --- |\n',
);
for (const option of OPTIONS.filter(({ name }) => wanted.length === 0 || wanted.includes(name))) {
  const sides = [
    { server: await startHermes('without', option.without), load: option.without.load ?? load(body()), list: [] as Measured[] },
    { server: await startHermes('with', option.with), load: option.with.load ?? load(body()), list: [] as Measured[] },
  ];
  if (option.with.history && sides[1]) await fill(sides[1].server);
  for (let round = -1; round < ROUNDS; round++)
    for (const side of sides) {
      const measured = await measure(side.server, { ...side.load, seconds: round < 0 ? WARM_UP_SECONDS : SECONDS });
      if (measured.errors > 0) throw new Error(`${option.title}: ${measured.errors} errors`);
      if (round >= 0) side.list.push(measured);
    }
  const [without = [], withIt = []] = sides.map(({ list }) => list);
  const ratio = (pick: (m: Measured) => number): string => median(withIt.map((m, index) => pick(m) / pick(without[index] ?? m))).toFixed(2);
  const middle = (list: Measured[]): string => `${median(list.map((m) => m.requestsPerSecond)).toFixed(0)}, ${median(list.map((m) => m.cpuMicros)).toFixed(0)}`;
  process.stdout.write(`| ${option.title} | ${middle(without)} | ${middle(withIt)} | ${ratio((m) => m.requestsPerSecond)} | ${ratio((m) => m.cpuMicros)} |\n`);
  for (const { server } of sides) process.kill(server.pid, 'SIGTERM');
}
await redis.stop();
stopAll();
process.exit(0);

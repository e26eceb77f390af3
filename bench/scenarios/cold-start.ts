import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CommandLine } from '../parts/command-line.ts';
import { type Fleet, hermesCommand, PORTKEY } from '../parts/fleet.ts';
import { rssMb } from '../parts/process-usage.ts';
import { table } from '../parts/rounds.ts';
import type { Scenario, Section } from '../parts/scenario.ts';
import { freePort, start, stop } from '../parts/servers.ts';
import { median } from '../parts/statistics.ts';

const PATIENCE_MS = 20_000;

interface Program {
  label: string;
  command(fleet: Fleet): Promise<{ args: string[]; env: Record<string, string>; port: number; path: string }>;
}

const hermes = (label: string, config: object, env: (fleet: Fleet) => Promise<Record<string, string>>): Program => ({
  label,
  command: async (fleet) => ({ ...(await hermesCommand(fleet.upstreams, { config, env: await env(fleet) })), path: '/readyz' }),
});
const shared = async (fleet: Fleet): Promise<Record<string, string>> => ({ REDIS_URL: await fleet.redisUrl(), DATABASE_URL: await fleet.databaseUrl() });
const PROGRAMS: Program[] = [
  {
    label: 'bare proxy',
    async command({ upstreams }) {
      const port = await freePort();
      return { args: ['bench/parts/bare-proxy.mjs', String(port), `http://127.0.0.1:${upstreams.fixed.port}`], env: {}, port, path: '/' };
    },
  },
  hermes('hermes', {}, () => Promise.resolve({})),
  hermes('hermes, Redis and PostgreSQL', { session: { storage: { hot_backend: 'redis', cold_backend: 'postgres' } } }, shared),
  hermes('hermes, two workers', { server: { workers: 2 }, session: { storage: { hot_backend: 'redis', cold_backend: 'postgres' } } }, shared),
  {
    label: 'portkey',
    async command() {
      const port = await freePort();
      return { args: [PORTKEY, `--port=${port}`, '--headless'], env: { NODE_ENV: 'production' }, port, path: '/' };
    },
  },
];

/** Milliseconds from the process's start to its first answer. */
async function startOnce({ label, command }: Program, fleet: Fleet): Promise<{ ms: number; rss: number }> {
  const { args, env, port, path } = await command(fleet);
  const began = performance.now();
  const starting = start(label, process.execPath, args, port, env);
  starting.catch(() => undefined);
  while (performance.now() - began < PATIENCE_MS) {
    const response = await fetch(`http://127.0.0.1:${port}${path}`).catch(() => undefined);
    await response?.arrayBuffer();
    if (response && (path === '/' || response.ok)) break;
    await sleep(3);
  }
  const ms = performance.now() - began;
  const server = await starting;
  const rss = rssMb(server.pid);
  await stop(server);
  return { ms, rss };
}

async function run(fleet: Fleet, settings: CommandLine): Promise<Section> {
  const programs = PROGRAMS.filter(({ label }) => label !== 'portkey' || existsSync(PORTKEY)).filter(({ label }) => !settings.quick || !label.includes(','));
  const found = new Map(programs.map(({ label }) => [label, [] as { ms: number; rss: number }[]]));
  for (let round = 0; round < settings.rounds; round++) for (const program of programs) found.get(program.label)?.push(await startOnce(program, fleet));
  const rows = [...found].map(([label, starts]) => [label, median(starts.map(({ ms }) => ms)).toFixed(0), median(starts.map(({ rss }) => rss)).toFixed(0)]);
  return { title: 'Cold start, to the first answer', lines: table(['', 'ms', 'RSS MB'], rows) };
}

export const coldStart: Scenario[] = [{ name: 'start', title: 'cold start', quick: true, main: false, run }];

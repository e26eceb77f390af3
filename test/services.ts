/**
 * Private servers for tests: Redis (single, Cluster, Sentinel), PostgreSQL and Prometheus, as Debian installs them, on free ports
 * and in folders of their own. What is missing is said once, loudly; the suites that need it are skipped by name.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);
export type ServiceName = 'redis' | 'postgres' | 'prometheus' | 'chromium';
const PROGRAMS: Record<ServiceName, { names: string[]; package: string }> = {
  redis: { names: ['redis-server'], package: 'redis-server' },
  postgres: { names: ['initdb', 'postgres', 'psql'], package: 'postgresql' },
  prometheus: { names: ['prometheus'], package: 'prometheus' },
  chromium: { names: ['chromium'], package: 'chromium' },
};

function find(name: string): string | undefined {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [...versions.map((version) => join(debian, version, 'bin')), ...(process.env.PATH ?? '').split(':'), '/usr/bin', '/usr/local/bin'];
  return folders.map((folder) => join(folder, name)).find((file) => existsSync(file));
}
function program(name: string): string {
  const file = find(name);
  if (file === undefined) throw new Error(`${name} is not installed; scripts/services installs it`);
  return file;
}

/** Undefined: it can be started. Else what is missing, in words. */
export function available(service: ServiceName): string | undefined {
  const { names, package: debian } = PROGRAMS[service];
  const missing = names.filter((name) => find(name) === undefined);
  return missing.length === 0 ? undefined : `${missing.join(' and ')} not found: run scripts/services, or apt-get install ${debian}`;
}
/** For `describe(…, skipWithout('redis'), …)`. A skipped suite is told on stderr, where nobody overlooks it. */
export function skipWithout(...services: ServiceName[]): { skip: string | false } {
  const missing = services.map((service) => available(service)).filter((reason) => reason !== undefined);
  if (missing.length > 0) process.stderr.write(`\n!!! SKIPPED: ${missing.join('; ')}\n\n`);
  return { skip: missing.length > 0 && missing.join('; ') };
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

const running = new Map<ChildProcess, NodeJS.Signals>();
const folders: string[] = [];
process.on('exit', () => {
  for (const [child, signal] of running) child.kill('SIGCONT') && child.kill(signal);
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
});
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'hermes-test-'));
  folders.push(folder);
  return folder;
}
function launch(
  file: string,
  args: string[],
  signal: NodeJS.Signals,
  options: { uid?: number; gid?: number; cwd?: string; env?: NodeJS.ProcessEnv } = {},
): ChildProcess {
  const child = spawn(file, args, { stdio: 'ignore', ...options });
  running.set(child, signal);
  child.once('exit', () => running.delete(child));
  child.unref();
  return child;
}
async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.ref();
  const gone = once(child, 'exit');
  child.kill('SIGCONT');
  child.kill(signal);
  await gone;
}
export async function until(condition: () => Promise<boolean> | boolean, what: string, ms = 10_000): Promise<void> {
  for (const stop = performance.now() + ms; ; await sleep(20)) {
    if (await Promise.resolve(condition()).catch(() => false)) return;
    if (performance.now() > stop) throw new Error(`${what} within ${ms} ms`);
  }
}

/** One command as words; the raw reply. */
function redisCommand(port: number, ...words: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(`${words.join(' ')}\r\n`));
    socket.setTimeout(1000, () => socket.destroy(new Error('no answer')));
    socket.once('error', reject);
    // A server whose role changes ends its connections.
    socket.once('close', () => reject(new Error('no answer')));
    socket.once('data', (data) => {
      resolve(data.toString());
      socket.destroy();
    });
  });
}

export interface RedisService {
  url: string;
  port: number;
  command(...words: string[]): Promise<string>;
  /** Accepts connections and never answers, until `thaw`. */
  freeze(): void;
  thaw(): void;
  kill(): Promise<void>;
  /** Again, on the same port, with what it knew. */
  start(): Promise<void>;
  stop(): Promise<void>;
}
export async function startRedis(extra: string[] = [], mode: { sentinel?: string } = {}): Promise<RedisService> {
  const [file, folder, port] = [program('redis-server'), temporaryFolder(), await freePort()];
  let child: ChildProcess | undefined;
  const common = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder];
  let args = [...common, '--save', '', '--appendonly', 'yes', '--appendfsync', 'always', ...extra];
  if (mode.sentinel !== undefined) {
    const configuration = join(folder, 'sentinel.conf');
    writeFileSync(configuration, mode.sentinel);
    args = [configuration, ...common, '--sentinel'];
  }
  const service: RedisService = {
    url: `redis://127.0.0.1:${port}`,
    port,
    command: (...words) => redisCommand(port, ...words),
    freeze: () => void child?.kill('SIGSTOP'),
    thaw: () => void child?.kill('SIGCONT'),
    kill: async () => {
      if (child) await end(child, 'SIGKILL');
    },
    async start() {
      child = launch(file, args, 'SIGKILL');
      await until(async () => (await redisCommand(port, 'PING')).startsWith('+PONG'), 'redis-server did not start');
    },
    stop: () => service.kill(),
  };
  await service.start();
  return service;
}
/** One node that owns every slot: its client is a Cluster's. */
export async function startRedisCluster(): Promise<RedisService> {
  const service = await startRedis(['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1']);
  await service.command('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
  await until(async () => (await service.command('CLUSTER', 'INFO')).includes('cluster_state:ok'), 'the cluster did not form');
  return { ...service, url: `redis://127.0.0.1:${service.port},127.0.0.1:${service.port}` };
}
export async function startRedisSentinel(master: RedisService): Promise<RedisService> {
  const service = await startRedis([], { sentinel: `sentinel monitor hermes 127.0.0.1 ${master.port} 1\n` });
  return { ...service, url: `redis+sentinel://127.0.0.1:${service.port}/hermes` };
}

export interface PostgresService {
  port: number;
  /** A new, empty database. */
  createDatabase(): Promise<string>;
  sql(text: string, database?: string): Promise<string>;
  freeze(): void;
  thaw(): void;
  kill(): Promise<void>;
  /** As an operator does it: every client is told that the server goes. */
  restart(): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
}
/** PostgreSQL refuses root: then it runs as `postgres`, else as `nobody`. */
function otherUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  const user = users.find(([name]) => name === 'postgres') ?? users.find(([name]) => name === 'nobody');
  return user && { uid: Number(user[2]), gid: Number(user[3]) };
}
export async function startPostgres(): Promise<PostgresService> {
  const [initdb, server, psql] = [program('initdb'), program('postgres'), program('psql')];
  const [folder, port, user] = [temporaryFolder(), await freePort(), otherUser()];
  if (user) chownSync(folder, user.uid, user.gid);
  const options = { ...user, cwd: folder, env: { PATH: process.env.PATH, HOME: folder, LC_ALL: 'C' } };
  const data = join(folder, 'data');
  await run(initdb, ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync'], options);
  let child: ChildProcess | undefined;
  let databases = 0;
  const everyProcess = (signal: NodeJS.Signals): void => {
    // Its back ends are processes of their own: a frozen server is all of them.
    const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
    const children = pids.filter((pid) => parentOf(pid) === child?.pid).map(Number);
    for (const pid of [child?.pid ?? 0, ...children]) if (pid > 0) process.kill(pid, signal);
  };
  const service: PostgresService = {
    port,
    async createDatabase() {
      databases += 1;
      const name = `test_${databases}`;
      await service.sql(`CREATE DATABASE ${name}`);
      return `postgres://postgres@127.0.0.1:${port}/${name}`;
    },
    async sql(text, database = 'postgres') {
      const { stdout } = await run(psql, ['-h', '127.0.0.1', '-p', String(port), '-U', 'postgres', '-d', database, '-Atqc', text], options);
      return stdout.trim();
    },
    freeze: () => everyProcess('SIGSTOP'),
    thaw: () => everyProcess('SIGCONT'),
    kill: async () => {
      if (child) await end(child, 'SIGQUIT');
    },
    async restart() {
      if (child) await end(child, 'SIGINT');
      await service.start();
    },
    async start() {
      child = launch(
        server,
        ['-D', data, '-p', String(port), '-k', folder, '-c', 'listen_addresses=127.0.0.1', '-c', 'fsync=off', '-c', 'max_connections=200'],
        'SIGQUIT',
        options,
      );
      await until(async () => (await service.sql('SELECT 1')) === '1', 'PostgreSQL did not start', 20_000);
    },
    stop: () => service.kill(),
  };
  await service.start();
  return service;
}
function parentOf(pid: string): number | undefined {
  try {
    return Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ')[1]);
  } catch {
    return undefined;
  }
}

export interface PrometheusService {
  url: string;
  stop(): Promise<void>;
}
/** `configuration` is the text of prometheus.yml. */
export async function startPrometheus(configuration: string, flags: readonly string[] = []): Promise<PrometheusService> {
  const [folder, port] = [temporaryFolder(), await freePort()];
  writeFileSync(join(folder, 'prometheus.yml'), configuration);
  const options = [
    `--config.file=${join(folder, 'prometheus.yml')}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
    ...flags,
  ];
  const child = launch(program('prometheus'), options, 'SIGKILL', { cwd: folder });
  const url = `http://127.0.0.1:${port}`;
  await until(async () => (await fetch(`${url}/-/ready`)).ok, 'Prometheus did not start', 20_000);
  return { url, stop: () => end(child, 'SIGTERM') };
}

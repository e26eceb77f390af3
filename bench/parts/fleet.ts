import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type PostgresService, type RedisService, startPostgres, startRedis } from '../../test/services.ts';
import { type BenchConfig, hermesConfig, KEY, type Upstreams } from './hermes-config.ts';
import { startNginxProxy, startUpstream } from './nginx.ts';
import { freePort, root, type Server, scratch, start, stop } from './servers.ts';

export const PORTKEY = join(root, 'bench', 'portkey', 'node_modules', '@portkey-ai', 'gateway', 'build', 'start-server.js');

export interface HermesOptions {
  /** Over the bench's own configuration. */
  config?: Partial<BenchConfig>;
  env?: Record<string, string>;
  /** Plugin files by name. */
  plugins?: Record<string, string>;
  /** For Node. */
  flags?: readonly string[];
  name?: string;
}

/** All servers of a run, each started when it is first wanted. */
export class Fleet {
  readonly upstreams: Upstreams;
  /** Only the floor and the gateways are compared. */
  readonly quick: boolean;
  readonly #servers = new Map<string, Promise<Server>>();
  #redis: Promise<RedisService> | undefined;
  #postgres: Promise<PostgresService> | undefined;

  constructor(upstreams: Upstreams, quick: boolean) {
    this.upstreams = upstreams;
    this.quick = quick;
  }

  static async start(quick = false): Promise<Fleet> {
    const port = await freePort();
    const [fixed, paced] = await Promise.all([
      startUpstream(),
      start('paced upstream', process.execPath, ['bench/parts/paced-upstream.mjs', String(port)], port),
    ]);
    return new Fleet({ fixed, paced }, quick);
  }

  /** The floor. */
  bare(upstream: Server): Promise<Server> {
    return this.#once(`bare ${upstream.port}`, () => startScript('bare proxy', 'bench/parts/bare-proxy.mjs', upstream));
  }
  httpProxy(upstream: Server): Promise<Server> {
    return this.#once(`http-proxy ${upstream.port}`, () => startScript('http-proxy-3', 'bench/parts/http-proxy.mjs', upstream));
  }
  nginx(upstream: Server): Promise<Server> {
    return this.#once(`nginx ${upstream.port}`, () => startNginxProxy(upstream));
  }
  /** Undefined where `npm ci --prefix bench/portkey` has not brought it. */
  async portkey(): Promise<Server | undefined> {
    if (!existsSync(PORTKEY)) return undefined;
    const port = await freePort();
    return this.#once('portkey', () => start('portkey', process.execPath, [PORTKEY, `--port=${port}`, '--headless'], port, { NODE_ENV: 'production' }));
  }
  hermes(options: HermesOptions = {}): Promise<Server> {
    return this.#once(`hermes ${JSON.stringify(options)}`, () => startHermes(this.upstreams, options));
  }

  /** Private ones, for sessions and workers. */
  async redisUrl(): Promise<string> {
    this.#redis ??= startRedis(['--appendonly', 'no']);
    return (await this.#redis).url;
  }
  async databaseUrl(): Promise<string> {
    this.#postgres ??= startPostgres();
    return (await this.#postgres).createDatabase();
  }

  /** Ends those whose work is done: what they keep in memory is not free for the others. */
  async retire(servers: readonly Server[]): Promise<void> {
    for (const [key, starting] of this.#servers) {
      const server = await starting;
      if (!servers.includes(server)) continue;
      this.#servers.delete(key);
      await stop(server);
    }
  }

  #once(key: string, make: () => Promise<Server>): Promise<Server> {
    const known = this.#servers.get(key) ?? make();
    this.#servers.set(key, known);
    return known;
  }
}

async function startScript(name: string, file: string, upstream: Server): Promise<Server> {
  const port = await freePort();
  return start(name, process.execPath, [file, String(port), `http://127.0.0.1:${upstream.port}`], port);
}

/** Command and environment of a gateway, for who starts it by himself. */
export async function hermesCommand(
  upstreams: Upstreams,
  { config = {}, env = {}, plugins = {}, flags = [] }: HermesOptions,
): Promise<{ args: string[]; env: Record<string, string>; port: number }> {
  const [folder, port] = [scratch(), await freePort()];
  const file = join(folder, 'hermes.json');
  writeFileSync(file, JSON.stringify({ ...hermesConfig(upstreams), pipeline: { plugins_dir: folder }, ...config }));
  for (const [name, text] of Object.entries(plugins)) writeFileSync(join(folder, name), text);
  const args = [...flags, 'dist/src/main.js', 'serve', '--config', file, '--port', String(port), '--host', '127.0.0.1'];
  return { args, env: { API_KEY: KEY, UP_KEY: 'sk-upstream', DATABASE_URL: `sqlite:///${folder}/hermes.db`, ...env }, port };
}

async function startHermes(upstreams: Upstreams, options: HermesOptions): Promise<Server> {
  const { args, env, port } = await hermesCommand(upstreams, options);
  return start(options.name ?? 'hermes', process.execPath, args, port, env);
}

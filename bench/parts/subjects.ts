import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, root, type Server, scratch, start } from './servers.ts';

export interface Subject extends Server {
  /** Before the path, for what cannot choose an upstream by model. */
  prefix: string;
  /** Beside those of the load. */
  headers: Record<string, string>;
}

export const KEY = 'sk-bench-5f0c1d7ab2e94d88';
const PORTKEY = join(root, 'bench', 'portkey', 'node_modules', '@portkey-ai', 'gateway', 'build', 'start-server.js');

/** The default pipeline with a key, 50 rules and three limits. */
export function hermesConfig(upstream: Server): object {
  const words = ['refund', 'return', 'invoice', 'coupon', 'delivery', 'address', 'warranty', 'complaint', 'exchange', 'payment'];
  const rules = Array.from({ length: 49 }, (_, index) => ({
    id: `rule_${index}`,
    match: { keywords: [`${words[index % words.length]}${index}`, `关键词${index}`, `topic ${index}`] },
    model: 'bench_model',
  }));
  const model = (id: string, path: string) => ({
    id,
    provider: 'openai',
    model_name: 'bench-model',
    api_base: `http://127.0.0.1:${upstream.port}${path}`,
    api_key_env: 'UP_KEY',
    pricing: { input_per_million: 0.15, output_per_million: 0.6 },
  });
  return {
    models: [
      model('bench_model', '/v1'),
      model('stream_model', '/sse/v1'),
      { ...model('claude_model', '/anthropic'), provider: 'anthropic' },
      { ...model('claude_stream_model', '/anthropic-sse'), provider: 'anthropic' },
    ],
    default_model: 'bench_model',
    route_rules: [...rules, { id: 'default', match: '.*', model: 'default_model' }],
    limits: [
      { per: 'user', requests_per_minute: 100_000_000 },
      { per: 'service', requests_per_minute: 100_000_000, tokens_per_minute: 100_000_000_000 },
      { per: 'key', requests_per_minute: 100_000_000 },
    ],
    session: { storage: { hot_backend: 'memory', cold_backend: 'sqlite' } },
    log: { level: 'info' },
  };
}

const at = (server: Server, prefix = '', headers: Record<string, string> = {}): Subject => ({ ...server, prefix, headers });

/** Portkey's gateway, when `npm ci --prefix bench/portkey` has brought it. */
async function startPortkey(): Promise<Server | undefined> {
  if (!existsSync(PORTKEY)) {
    process.stderr.write('Portkey is left out: npm ci --prefix bench/portkey brings it\n');
    return undefined;
  }
  const port = await freePort();
  return start('portkey', process.execPath, [PORTKEY, `--port=${port}`, '--headless'], port, { NODE_ENV: 'production' });
}

/** Whom a scenario compares; the bare proxy first. */
export async function createSubjects(upstream: Server): Promise<{ for(scenario: string): Subject[] }> {
  const [barePort, hermesPort] = [await freePort(), await freePort()];
  const folder = scratch();
  const file = join(folder, 'hermes.json');
  writeFileSync(file, JSON.stringify(hermesConfig(upstream)));
  const origin = `http://127.0.0.1:${upstream.port}`;
  const bare = await start('bare proxy', process.execPath, ['bench/parts/bare-proxy.mjs', String(barePort), origin], barePort);
  const env = { API_KEY: KEY, UP_KEY: 'sk-upstream', DATABASE_URL: `sqlite:///${folder}/hermes.db` };
  const hermes = await start(
    'hermes',
    process.execPath,
    ['dist/src/main.js', 'serve', '--config', file, '--port', String(hermesPort), '--host', '127.0.0.1'],
    hermesPort,
    env,
  );
  const portkey = await startPortkey();
  const viaPortkey = (path: string): Subject[] =>
    portkey ? [at(portkey, '', { 'x-portkey-provider': 'openai', 'x-portkey-custom-host': `${origin}${path}` })] : [];
  const subjects: Record<string, Subject[]> = {
    json: [at(bare), at(hermes), ...viaPortkey('/v1')],
    sse: [at(bare, '/sse'), at(hermes), ...viaPortkey('/sse/v1')],
    body: [at(bare), at(hermes)],
    anthropic: [at(bare), at(hermes)],
    'anthropic-sse': [at(bare, '/sse'), at(hermes)],
  };
  return { for: (scenario) => subjects[scenario] ?? [] };
}

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, type Server, scratch, start } from './servers.ts';

export interface Subject extends Server {
  /** Before the path, for what cannot choose an upstream by model. */
  prefix: string;
}

/** The default pipeline with a key, 50 rules and three limits. */
function hermesConfig(upstream: Server): object {
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
    models: [model('bench_model', '/v1'), model('stream_model', '/sse/v1')],
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

export async function createSubjects(upstream: Server): Promise<{ for(scenario: string): Subject[] }> {
  const [barePort, bareSsePort, hermesPort] = [await freePort(), await freePort(), await freePort()];
  const folder = scratch();
  const file = join(folder, 'hermes.json');
  writeFileSync(file, JSON.stringify(hermesConfig(upstream)));
  const origin = `http://127.0.0.1:${upstream.port}`;
  const bare = await start('bare proxy', process.execPath, ['bench/parts/bare-proxy.mjs', String(barePort), origin], barePort);
  const bareSse = await start('bare proxy', process.execPath, ['bench/parts/bare-proxy.mjs', String(bareSsePort), origin], bareSsePort);
  const hermes = await start(
    'hermes',
    process.execPath,
    ['dist/src/main.js', 'serve', '--config', file, '--port', String(hermesPort), '--host', '127.0.0.1'],
    hermesPort,
    {
      API_KEY: 'sk-bench-5f0c1d7ab2e94d88',
      UP_KEY: 'sk-upstream',
      DATABASE_URL: `sqlite:///${folder}/hermes.db`,
    },
  );
  return {
    for: (scenario) =>
      scenario === 'sse'
        ? [
            { ...bareSse, prefix: '/sse' },
            { ...hermes, prefix: '' },
          ]
        : [
            { ...bare, prefix: '' },
            { ...hermes, prefix: '' },
          ],
  };
}

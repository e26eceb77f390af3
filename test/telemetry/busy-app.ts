import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Reply, type RunningApp, startApp, user } from '../app-kit.ts';

/** The product with something of everything: routes, failover, a fallback, tools, sessions, limits, schedules, shadow. */
export interface BusyApp extends RunningApp {
  /** One round of traffic in which everything happens; gives each answer. */
  traffic(round: number): Promise<Reply[]>;
}

const PRICE = { input_per_million: 3, output_per_million: 15, cached_input_per_million: 0.3 };

export async function startBusyApp(more: object = {}): Promise<BusyApp> {
  const folder = mkdtempSync(join(tmpdir(), 'hermes-busy-'));
  const rules = join(folder, 'next.yaml');
  writeFileSync(
    rules,
    JSON.stringify([
      { id: 'order_query', match: { keywords: ['order'] }, model: 'backup' },
      { id: 'default', match: '.*', model: 'default_model' },
    ]),
  );
  const tools = createServer((request, response) => {
    request.resume().on('end', () => {
      const slow = request.url?.includes('slow') ?? false;
      setTimeout(() => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ state: 'shipped' })), slow ? 400 : 2);
    });
  });
  await new Promise<void>((resolve) => tools.listen(0, '127.0.0.1', resolve));
  const { port } = tools.address() as AddressInfo;
  const app = await startApp({ ...busyConfig(port, rules), ...more }, { env: { KB_KEY: 'kb-3f9c1d7e5a2b48c6aa' } });
  return {
    ...app,
    traffic: (round) => traffic(app, round),
    async stop() {
      await app.stop();
      tools.close();
      tools.closeAllConnections();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function busyConfig(toolsPort: number, rules: string): object {
  const tool = (id: string, more: object = {}) => ({
    id,
    description: `${id} for tests`,
    parameters: { type: 'object', properties: { order_id: { type: 'string' } } },
    endpoint: `http://127.0.0.1:${toolsPort}/${id}`,
    ...more,
  });
  return {
    auth: { keys: [{ id: 'kb', key_env: 'KB_KEY', service: 'kb', project: 'lab' }] },
    limits: [{ per: 'service', match: { service_type: 'kb' }, requests_per_minute: 6, burst: 1 }],
    models: [
      { id: 'fast_model', provider: 'simulator', model_name: 'demo-fast', tier: 'low', max_tokens: 400, context_window: 8000, pricing: PRICE },
      { id: 'backup', provider: 'simulator', model_name: 'demo-backup', tier: 'mid', pricing: PRICE },
      { id: 'broken', provider: 'simulator', model_name: 'demo-broken?fail=503' },
      { id: 'pair', failover: { strategy: 'priority', upstreams: [{ target: 'broken' }, { target: 'backup' }], failure_threshold: 3 } },
      { id: 'fragile', failover: { upstreams: [{ target: 'broken' }], failure_threshold: 3, fallback_target: 'fast_model' } },
    ],
    default_model: 'fast_model',
    route_rules: [
      { id: 'order_query', match: { keywords: ['order'] }, model: 'fast_model', tools: ['order.query', 'order.slow'] },
      { id: 'vip', match: { user_level: 'vip' }, model: 'pair' },
      { id: 'fragile', match: { keywords: ['fragile'] }, model: 'fragile' },
      { id: 'default', match: '.*', model: 'default_model' },
    ],
    tools: [tool('order.query'), tool('order.slow', { timeout_ms: 100 })],
    session: { max_context_tokens: 300, reserve_tokens: 20 },
    shadow: { sample: 1, rules_file: rules, run_models: true, usd_per_day: 10 },
  };
}

async function traffic(app: RunningApp, round: number): Promise<Reply[]> {
  const kb = { authorization: 'Bearer kb-3f9c1d7e5a2b48c6aa' };
  const session = `talk-${round}`;
  const answers = [
    await app.chat({ messages: user('hello') }),
    await app.chat({ messages: user('hello again, at length'), stream: true }),
    await app.chat({ messages: user(`where is order 7? [[tool order.query {"order_id":"${round}"}]]`) }),
    await app.chat({ messages: user(`and my slow order? [[tool order.slow {"order_id":"${round}"}]]`) }),
    await app.chat({ messages: user('something for an important person'), user_level: 'vip' }),
    await app.chat({ messages: user('fragile thing') }),
    await app.chat({ messages: user('hello'), model: 'no-such-model' }),
    await app.chat({ messages: user('said once'), request_id: `once-${round}` }),
    await app.chat({ messages: user('said once'), request_id: `once-${round}` }),
    await app.chat({ messages: user('hello') }, kb),
    await app.chat({ messages: user('hello') }, kb),
    await app.chat({ messages: user('hello') }, { authorization: 'Bearer wrong' }),
    await app.chat({ messages: user('hello'), prefer_model: 'broken' }),
  ];
  for (let turn = 0; turn < 4; turn++) answers.push(await app.chat({ messages: user(`turn ${turn} ${'of many words '.repeat(25)}`), session_id: session }));
  return answers;
}

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const tsx = import.meta.resolve('tsx');
interface Ran {
  code: number | null;
  out: string;
  err: string;
}
function hermes(args: string[], env: Record<string, string> = {}): Promise<Ran> {
  const child = spawn(process.execPath, ['--import', tsx, main, ...args], { env: { PATH: process.env.PATH ?? '', DATABASE_URL: 'sqlite::memory:', ...env } });
  const ran: Ran = { code: null, out: '', err: '' };
  child.stdout.on('data', (chunk) => (ran.out += chunk));
  child.stderr.on('data', (chunk) => (ran.err += chunk));
  return new Promise((resolve) => child.on('close', (code) => resolve({ ...ran, code })));
}

const folder = mkdtempSync(join(tmpdir(), 'hermes-route-'));
const config = join(folder, 'hermes.yaml');
const rules = [
  { id: 'order', match: { keywords: ['订单'] }, model: 'pool', tools: [] },
  { id: 'rest', match: '.*', model: 'default_model' },
];
const file = {
  models: [
    { id: 'a', provider: 'simulator', model_name: 'a-1' },
    { id: 'pool', failover: { strategy: 'priority', upstreams: [{ target: 'a' }] } },
  ],
  default_model: 'a',
  route_rules: rules,
};
writeFileSync(config, JSON.stringify(file));

test('route debug shows the rule, the keyword, the model and its upstream', async () => {
  const ran = await hermes(['route', 'debug', '我的订单呢', '--config', config]);
  assert.equal(ran.code, 0, ran.err);
  for (const part of ['order', 'keyword 订单', 'pool', 'a  weight 1  closed']) assert.ok(ran.out.includes(part), `no ${part} in ${ran.out}`);
});

test('route lint exits 1 for errors, even where the rest of the file is wrong', async () => {
  const late = join(folder, 'late.yaml');
  writeFileSync(late, JSON.stringify({ ...file, models: 'broken', route_rules: [...rules].reverse() }));
  const ran = await hermes(['route', 'lint', '--config', late]);
  assert.equal(ran.code, 1);
  assert.match(ran.out, /order: it can never be reached/);
});

test('route lint --strict exits 1 for warnings', async () => {
  assert.equal((await hermes(['route', 'lint', '--strict', '--config', config])).code, 1);
});

test('route test exits 1 when a question misses, and shows the confusion', async () => {
  const bad = join(folder, 'bad.yaml');
  writeFileSync(bad, '- { rule: order, questions: [我的包裹] }');
  const ran = await hermes(['route', 'test', bad, '--config', config]);
  assert.equal(ran.code, 1, ran.err);
  assert.match(ran.out, /order → rest {2}1/);
});

test('--url asks a running gateway as an operator, and says why it refuses', async () => {
  const asked: unknown[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => (body += chunk));
    request.on('end', () => {
      asked.push([request.url, request.headers.authorization, JSON.parse(body)]);
      response.writeHead(403, { 'content-type': 'application/json' }).end(JSON.stringify({ error: { message: 'This route needs an admin key.' } }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const ran = await hermes(['route', 'debug', 'hi', '--url', `${url}/`, '--session', 's', '--as-key', 'k', '--service', 'kb', '--user', 'u'], {
    ADMIN_API_KEY: 'sk-admin',
  });
  server.close();
  assert.deepEqual(asked, [['/debug/route', 'Bearer sk-admin', { message: 'hi', session_id: 's', user: 'u', service_type: 'kb', as_key: 'k' }]]);
  assert.deepEqual([ran.code, ran.err.includes('403: This route needs an admin key.')], [1, true]);
});

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startDemoTools } from '../../src/cli/demo-tools.ts';

test('the demo tools answer every id plausibly, refund once an id, and know what they do not have', async () => {
  const tools = await startDemoTools(0);
  const ask = async (tool: string, params: object, request_id = 'r1'): Promise<[number, Record<string, unknown>]> => {
    const response = await fetch(`http://127.0.0.1:${tools.port}/tools/${tool}`, {
      method: 'POST',
      body: JSON.stringify({ tool, request_id, session_id: null, user: null, params }),
    });
    return [response.status, (await response.json()) as Record<string, unknown>];
  };
  const [, order] = await ask('order.query', { order_id: '20240515' });
  assert.equal(order.order_id, '20240515');
  assert.ok(Array.isArray(order.logistics) && order.logistics.length >= 2);
  assert.deepEqual((await ask('order.query', { order_id: '20240515' }))[1], order);
  const refunds = [];
  for (const id of ['r1', 'r1', 'r2']) refunds.push((await ask('refund.apply', { order_id: '20240515', amount: 199 }, id))[1].refund_id);
  assert.equal(refunds[0], refunds[1]);
  assert.notEqual(refunds[0], refunds[2]);
  const [status, history] = await ask('customer.history', { customer_id: 'c-1' });
  assert.equal(status, 200);
  assert.ok(Array.isArray(history.orders));
  assert.equal((await ask('no.such', {}))[0], 404);
  await tools.close();
});

test('the demo has its tools on the port that DEMO_TOOLS_PORT names, and says so where it cannot', { timeout: 60_000 }, async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const address = taken.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const demo = (wanted: string) => {
    const child = spawn(
      process.execPath,
      ['--import', import.meta.resolve('tsx'), fileURLToPath(new URL('../../src/main.ts', import.meta.url)), 'demo', '--port', '0', '--host', '127.0.0.1'],
      { env: { PATH: process.env.PATH, DATABASE_URL: 'sqlite::memory:', DEMO_TOOLS_PORT: wanted } },
    );
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (part: Buffer) => (said += String(part)));
    return { child, said: () => said };
  };
  for (const [wanted, reason] of [
    [String(port), /cannot listen on port \d+, which DEMO_TOOLS_PORT names/],
    ['many', /DEMO_TOOLS_PORT must be a port, not "many"/],
  ] as const) {
    const { child, said } = demo(wanted);
    assert.deepEqual(await once(child, 'close'), [1, null]);
    assert.match(said(), reason);
  }
  taken.close();
  await once(taken, 'close');
  const { child, said } = demo(String(port));
  while (!said().includes('Try it')) await once(child.stdout, 'data');
  const order = await fetch(`http://127.0.0.1:${port}/tools/order.query`, { method: 'POST', body: '{"tool":"order.query","params":{"order_id":"1"}}' });
  assert.equal(((await order.json()) as { order_id: string }).order_id, '1');
  child.kill('SIGTERM');
  assert.deepEqual(await once(child, 'close'), [0, null]);
});

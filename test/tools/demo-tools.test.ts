import assert from 'node:assert/strict';
import { test } from 'node:test';
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

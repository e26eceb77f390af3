import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { after, before, test } from 'node:test';
import { HermesError } from '../../src/contracts/errors.ts';
import type { Behaviour } from '../fake-upstream.ts';
import { model } from './failover-kit.ts';
import { type SocketHouse, socketHouse } from './socket-house.ts';

const role = { role: 'assistant' as const, content: '' };
let at: SocketHouse;
let refusing: string;

before(async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const address = server.address();
  refusing = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/v1`;
  await new Promise((resolve) => server.close(resolve));
  at = await socketHouse((target) => {
    const pair = (id: string, over = {}, failover = {}) =>
      model(id, [target(`${id}-a`, { weight: 99, ...over }), target(`${id}-b`)], { failure_threshold: 100, ...failover });
    return [
      ...['500', 'reset', 'html', 'object', 'half', 'role', 'error', 'empty', 'json500', 'gone', 'after'].map((id) => pair(id)),
      pair('refused', { apiBase: refusing }),
      pair('silent', { firstTokenTimeoutMs: 80, timeoutMs: 80 }),
      pair('whole', {}, { commit: 'complete' }),
      pair('stalls', { timeoutMs: 120 }, { commit: 'complete' }),
      pair('hedged', {}, { hedge_ms: 40 }),
    ];
  });
});
after(() => at.close());

const ways: [string, Behaviour][] = [
  ['500', (reply) => reply.error(500)],
  ['reset', (reply) => reply.reset()],
  ['html', (reply) => void reply.response.writeHead(200, { 'content-type': 'text/html' }).end('<html>maintenance</html>')],
  ['object', (reply) => reply.json({ error: { message: 'overloaded', type: 'server_error' } })],
  [
    'half',
    (reply) => {
      reply.response.writeHead(200, { 'content-type': 'application/json', 'content-length': '400' });
      reply.response.write('{"id":"x","choi');
      return reply.cut();
    },
  ],
  ['silent', (reply) => reply.stall()],
  ['refused', () => undefined],
];
for (const [id, behaviour] of ways) {
  for (const stream of [false, true]) {
    test(`over a socket: ${id} moves a ${stream ? 'stream' : 'call'} on`, async () => {
      at.fake.on(`${id}-a`, behaviour);
      const { text, error, answer } = await at.ask({ model: id, stream });
      assert.deepEqual([error, text, answer.facts.attempts], [undefined, 'echo: hi', 2]);
    });
  }
}

const beginnings: [string, Behaviour][] = [
  ['role', (reply) => reply.stream([role, { error: { message: 'exploded', type: 'server_error', code: 'exploded' } }], { done: false })],
  ['error', (reply) => reply.stream([{ error: { message: 'exploded', type: 'server_error', code: 'exploded' } }], { done: false })],
  ['empty', (reply) => reply.open().end()],
];
for (const [id, behaviour] of beginnings) {
  test(`over a socket: a stream that begins with ${id} and breaks moves on unseen`, async () => {
    at.fake.on(`${id}-a`, behaviour);
    const { text, error } = await at.ask({ model: id, stream: true });
    assert.deepEqual([error, text], [undefined, 'echo: hi']);
  });
}

test("over a socket: an error after content is the stream's end", async () => {
  at.fake.on('after-a', async (reply) => {
    await reply.stream([role, { content: 'some' }], { done: false, end: false });
    await reply.cut(150);
  });
  const { error } = await at.ask({ model: 'after', stream: true });
  assert.equal(error?.code, 'upstream_error');
  assert.equal(at.fake.callsOf('after-b').length, 0);
});

test('over a socket: commit complete begins a cut and a stalled stream anew', async () => {
  at.fake.on('whole-a', async (reply) => {
    await reply.stream([role, { content: 'some' }], { done: false, end: false });
    await reply.cut();
  });
  at.fake.on('stalls-a', (reply) => reply.stream([role, { content: 'some' }], { done: false, end: false }));
  for (const id of ['whole', 'stalls']) {
    const { text, error } = await at.ask({ model: id, stream: true });
    assert.deepEqual([error, text], [undefined, 'echo: hi']);
  }
});

test('over a socket: a client that leaves ends the call upstream at once and nobody else is asked', async () => {
  at.fake.on('gone-a', (reply) => reply.stall());
  for (const stream of [false, true]) {
    const earlier = at.fake.callsOf('gone-a').length;
    const exchange = at.exchange({ model: 'gone', stream });
    const running = at.run(exchange);
    await at.fake.until(() => at.fake.callsOf('gone-a').length > earlier);
    exchange.cancel(new HermesError('client_closed', 'gone'));
    assert.equal((await running).error?.code, 'client_closed');
    await at.fake.until(() => at.fake.callsOf('gone-a').every(({ aborted }) => aborted));
  }
  assert.equal(at.fake.callsOf('gone-b').length, 0);
});

test('over a socket: the loser of a hedge is hung up on, and both are booked', async () => {
  at.fake.on('hedged-a', (reply) => reply.stall());
  const { text, exchange } = await at.ask({ model: 'hedged', stream: true, priority: 'urgent' });
  assert.equal(text, 'echo: hi');
  assert.deepEqual(exchange.calls.map(({ upstream, outcome }) => [upstream, outcome]).sort(), [
    ['hedged-a', 'aborted'],
    ['hedged-b', 'ok'],
  ]);
  await at.fake.until(() => at.fake.callsOf('hedged-a').every(({ aborted }) => aborted));
});

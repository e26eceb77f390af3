import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startApp, user } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { type Gateway, startGateway } from '../process-kit.ts';
import { skipWithout, startRedis, until } from '../services.ts';
import { startStopwatch } from '../time-kit.ts';
import { type Toolbox, toolbox } from '../tools/tools-kit.ts';

/** The lease on a running request. */
const LEASE_MS = 5000;

let fake: FakeUpstream;
let box: Toolbox;
let models: object[];
before(async () => {
  fake = await createFakeUpstream();
  box = await toolbox({ refund: ({ body }) => ({ refunded: body.params.order_id }) });
  models = [{ id: 'm', provider: 'openai', api_base: fake.url, api_key_env: 'UP', failover: { max_attempts: 1 } }];
});
after(async () => {
  await box.close();
  await fake.close();
});

describe('a gateway killed with SIGKILL', () => {
  test("between a tool's answer and the model's second call does not call the tool again for the client's retry", async () => {
    let broken = true;
    fake.on('m', (reply, call) => {
      if (call.body.messages.at(-1)?.role !== 'tool')
        return reply.completion({
          tool_calls: [{ id: 'c1', type: 'function', function: { name: call.body.tools?.[0]?.function.name ?? '', arguments: '{"order_id":"42"}' } }],
        });
      return broken ? reply.stall() : reply.completion({ content: 'paid back' });
    });
    const tools = [{ id: 'refund', endpoint: `${box.url}/refund`, side_effects: true }];
    const gateway: Gateway = await startGateway({ models, tools }, { UP: 'sk-up' });
    const body = { model: 'm', session_id: 's', request_id: 'refund-42', tools: ['refund'], messages: user('pay 42 back') };
    const lost = gateway.post(body).then(
      () => 'answered',
      () => 'broken off',
    );
    await fake.until(() => fake.calls.length === 2, 10_000);
    await gateway.kill();
    assert.equal(await lost, 'broken off');
    assert.equal(box.hits.length, 1);

    broken = false;
    await gateway.start();
    const reply = await gateway.post(body);
    const { choices } = (await reply.json()) as { choices: { message: { content: string } }[] };
    assert.equal(choices[0]?.message.content, 'paid back');
    assert.equal(box.hits.length, 1, 'the tool was called again');
    // The first call of the model is in the log as well: only the second is made again.
    assert.equal(fake.calls.length, 3);
    const messages = await gateway.messages('s');
    assert.deepEqual([messages[0], messages.at(-1), messages.length], ['u:pay 42 back', 'a:paid back', 4]);
    await gateway.stop();
  });

  test('while a request runs frees its id within the lease, on another instance', skipWithout('redis'), async () => {
    const redis = await startRedis();
    let stalls = true;
    fake.on('m', (reply) => (stalls ? reply.stall() : reply.completion({ content: 'in the end' })));
    const env = { REDIS_URL: redis.url, UP: 'sk-up' };
    const [gateway, other] = await Promise.all([startGateway({ models }, env), startApp({ models }, { env })]);
    const before = fake.calls.length;
    const body = { model: 'm', request_id: 'running', messages: user('hello') };
    void gateway.post(body).catch(() => undefined);
    await fake.until(() => fake.calls.length === before + 1, 10_000);
    // While it lives the other waits for it.
    const reply = other.chat(body);
    await until(async () => (await redis.command('KEYS', '*waiting*')).includes('waiting'), 'nobody waits');
    stalls = false;
    await gateway.kill();
    const [, lease = ''] = /(hermes:lease:\{idempotency:\S+)/.exec(await redis.command('KEYS', '*')) ?? [];
    const left = Number(/:(\d+)/.exec(await redis.command('PTTL', lease))?.[1]);
    assert.ok(left > 0 && left <= LEASE_MS, `${left} ms`);
    // A look every quarter of a second after that: two minutes would be the time of a request.
    const watch = startStopwatch();
    assert.equal((await reply).status, 200);
    assert.ok(watch.stop() < LEASE_MS + 10_000, `${watch.ms()} ms`);
    assert.equal(fake.calls.length, before + 2);
    await other.stop();
    await redis.stop();
  });
});

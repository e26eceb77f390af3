import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Reply, type RunningApp, saidIn, startApp, user } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { type RedisService, skipWithout, startRedis, until } from '../services.ts';

describe('the answer cache in Redis', skipWithout('redis'), () => {
  let redis: RedisService;
  let upstream: FakeUpstream;
  const apps: RunningApp[] = [];
  const ask = (app: RunningApp | undefined, text: string, more: object = {}): Promise<Reply> =>
    (app as RunningApp).chat({ model: 'fake', temperature: 0, messages: user(text), ...more });
  before(async () => {
    redis = await startRedis();
    upstream = await createFakeUpstream();
    const models = [{ id: 'fake', provider: 'openai', api_base: upstream.url, api_key_env: 'FAKE_KEY' }];
    for (let count = 0; count < 2; count++) apps.push(await startApp({ models, cache: {} }, { env: { FAKE_KEY: 'sk-upstream', REDIS_URL: redis.url } }));
  });
  after(async () => {
    for (const app of apps) await app.stop();
    await upstream.close();
    await redis.stop();
  });

  it('makes one call for a thousand equal requests at two instances, whole and streamed', async () => {
    upstream.on('fake', (reply) => reply.completion({ content: 'one for all' }, { delayMs: 150 }));
    const calls = upstream.calls.length;
    const replies = await Promise.all(Array.from({ length: 1000 }, (_, index) => ask(apps[index % 2], 'crowd', index % 3 === 0 ? { stream: true } : {})));
    assert.ok(replies.every((reply) => saidIn(reply) === 'one for all'));
    assert.equal(upstream.calls.length - calls, 1);
    assert.equal(replies.filter(({ headers }) => headers.get('x-hermes-cache') === 'miss').length, 1);
    upstream.on('fake', (reply, { body }) => reply.completion({ content: `echo: ${body.messages.at(-1)?.content}` }));
  });

  it('goes on by itself when the instance that asked for all has failed', async () => {
    upstream.on('fake', async (reply) => {
      await new Promise((resolve) => setTimeout(resolve, 100));
      reply.error(400, 'no', { type: 'invalid_request_error' });
    });
    const calls = upstream.calls.length;
    const replies = await Promise.all([0, 1].map((index) => ask(apps[index], 'refused')));
    assert.deepEqual(
      replies.map(({ status }) => status),
      [400, 400],
    );
    assert.equal(upstream.calls.length - calls, 2);
    upstream.on('fake', (reply, { body }) => reply.completion({ content: `echo: ${body.messages.at(-1)?.content}` }));
  });

  it('serves what another instance has kept, and loses nothing but hits when Redis goes away', async () => {
    await ask(apps[0], 'shared', { stream: true });
    let reply = await ask(apps[1], 'shared');
    // It is kept behind the answer's back.
    await until(async () => {
      reply = await ask(apps[1], 'shared');
      return reply.headers.get('x-hermes-cache') === 'hit';
    }, 'a hit');
    assert.equal(saidIn(reply), 'echo: shared');
    const calls = upstream.calls.length;
    await redis.kill();
    for (const text of ['shared', 'new', 'new']) assert.equal((await ask(apps[1], text)).status, 200, text);
    assert.equal(upstream.calls.length, calls + 1);
  });
});

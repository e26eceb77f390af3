import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type RunningApp, startApp, user } from '../app-kit.ts';
import { skipWithout, startRedis } from '../services.ts';

const config = {
  models: [{ id: 'fast_model', provider: 'simulator', max_tokens: 50 }],
  limits: [
    { per: 'user', requests_per_minute: 3 },
    { per: 'service', tokens_per_minute: 100_000 },
  ],
};

describe('limits in the running product', () => {
  let app: RunningApp;
  before(async () => {
    app = await startApp(config);
  });
  after(() => app.stop());

  it('show in the headers of an answer, whole or streamed, and of a refusal', async () => {
    for (const stream of [false, true, false]) {
      const { status, headers } = await app.chat({ messages: user('hello'), user: 'u1', stream });
      assert.equal(status, 200);
      assert.equal(headers.get('x-ratelimit-limit-requests'), '3');
      assert.match(headers.get('x-ratelimit-remaining-tokens') ?? '', /^99\d{3}$/);
      assert.match(headers.get('x-ratelimit-reset-requests') ?? '', /^(\d+m)?\d+m?s$/);
    }
    const { status, headers, json } = await app.chat({ messages: user('hello'), user: 'u1' });
    assert.equal(status, 429);
    assert.deepEqual([json.error?.type, json.error?.code], ['rate_limit_error', 'rate_limit_exceeded']);
    assert.equal(headers.get('x-hermes-limit'), 'user_requests_per_minute');
    const ms = Number(headers.get('retry-after-ms'));
    assert.ok(ms > 15_000 && ms <= 20_000, `${ms} ms`);
    assert.equal(headers.get('retry-after'), String(Math.ceil(ms / 1000)));
    assert.equal((await app.chat({ messages: user('hello'), user: 'u2' })).status, 200, 'another user');
  });
  it('settle a request that was never sent at nothing', async () => {
    const left = async (): Promise<number> =>
      Number((await app.chat({ messages: user('hello'), user: crypto.randomUUID() })).headers.get('x-ratelimit-remaining-tokens'));
    const before = await left();
    for (let i = 0; i < 5; i++) {
      const { status } = await app.chat({ model: 'none', messages: user('hello'.repeat(400)), user: crypto.randomUUID(), max_tokens: 9000 });
      assert.equal(status, 404);
    }
    assert.ok((await left()) >= before - 200);
  });
  it('are not thrown off by counts that only look like ones, at any door', async () => {
    const messages = user('hi');
    for (const [path, body, param] of [
      ['/v1/chat/completions', { messages, max_tokens: 1e308, n: 100 }, 'max_tokens'],
      ['/v1/chat/completions', { messages, max_completion_tokens: 1e21 }, 'max_completion_tokens'],
      ['/v1/chat/completions', { messages, n: 129 }, 'n'],
      ['/v1/messages', { messages, max_tokens: 1e308 }, 'max_tokens'],
      ['/v1/responses', { input: 'hi', max_output_tokens: 1e308 }, 'max_output_tokens'],
    ] as const) {
      const { status, text } = await app.post(path, { model: 'fast_model', ...body });
      assert.equal(status, 400, text);
      assert.ok(text.includes(`'${param}' must be a whole number`), text);
    }
  });
  it('hold for what is passed through, too', async () => {
    const passing = await startApp({ ...config, limits: [{ per: 'key', requests_per_minute: 1 }] });
    const statuses = [await passing.post('/v1/embeddings', { input: 'x' }), await passing.post('/v1/embeddings', { input: 'x' })];
    assert.deepEqual(
      statuses.map(({ status }) => status),
      [404, 429],
    );
    assert.equal(statuses[1]?.headers.get('x-hermes-limit'), 'key_requests_per_minute');
    await passing.stop();
  });
});

describe('limits of two instances on one Redis', skipWithout('redis'), () => {
  it('admit exactly the allowed number between them', async () => {
    const redis = await startRedis();
    const apps = await Promise.all(
      [0, 1].map(() => startApp({ ...config, limits: [{ per: 'service', requests_per_minute: 10 }] }, { env: { REDIS_URL: redis.url } })),
    );
    const replies = await Promise.all(Array.from({ length: 30 }, (_, index) => apps[index % 2]?.chat({ messages: user(`hello ${index}`) })));
    assert.equal(replies.filter((reply) => reply?.status === 200).length, 10);
    assert.equal(replies.filter((reply) => reply?.status === 429).length, 20);
    await Promise.all(apps.map((app) => app.stop()));
    await redis.stop();
  });
});

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { events, KEY, type Reply, type RunningApp, saidIn, startApp, user } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';

const OTHER = 'sk-other-7b1e5c9d3f2a4860';
let upstream: FakeUpstream;
let app: RunningApp;

const tool = (id: string, side_effects: boolean) => ({ id, endpoint: `http://127.0.0.1:${upstream.port}/tools/${id}`, side_effects });
const ask = (text: string, more: object = {}, headers: Record<string, string> = {}): Promise<Reply> =>
  app.chat({ model: 'fake', temperature: 0, messages: user(text), ...more }, headers);
const state = (reply: Reply): string | null => reply.headers.get('x-hermes-cache');
const metric = async (name: string): Promise<number> => {
  const { text } = await app.fetch('/metrics');
  return [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm'))].reduce((sum, [, value]) => sum + Number(value), 0);
};

before(async () => {
  upstream = await createFakeUpstream();
  app = await startApp(
    {
      models: ['fake', 'failing'].map((id) => ({ id, provider: 'openai', model_name: id, api_base: upstream.url, api_key_env: 'FAKE_KEY' })),
      auth: {
        keys: [
          { id: 'other', key_env: 'OTHER', service: 'default', project: 'default' },
          { id: 'limited', key_env: 'LIMITED', service: 'limited' },
        ],
      },
      tools: [tool('order.query', false), tool('refund.apply', true)],
      limits: [{ per: 'key', match: { key: 'limited' }, requests_per_minute: 2 }],
      cache: { ttl_seconds: 60, max_bytes: '8mb' },
    },
    { env: { FAKE_KEY: 'sk-upstream', OTHER, LIMITED: 'sk-limited-2c4e6f8a1b3d5c7e' } },
  );
});
after(async () => {
  await app.stop();
  await upstream.close();
});
beforeEach(() => upstream.calls.splice(0));

describe('the answer cache', () => {
  it('gives an equal request at temperature 0 the same answer, and asks nobody', async () => {
    const [first, second] = [await ask('twice'), await ask('twice')];
    assert.deepEqual([first, second].map(state), ['miss', 'hit']);
    assert.equal(second.text, first.text);
    assert.equal(upstream.calls.length, 1);
    assert.equal(second.headers.get('x-hermes-model'), 'fake');
    assert.equal(second.headers.get('x-hermes-cost-usd'), null);
    assert.deepEqual(
      [first, second].map(({ headers }) => headers.get('x-hermes-attempts')),
      ['1', '0'],
    );
  });

  it('counts the tokens that it saved', async () => {
    const before = await metric('hermes_cache_tokens_saved_total');
    await ask('saved');
    assert.equal(await metric('hermes_cache_tokens_saved_total'), before);
    await ask('saved');
    assert.equal(await metric('hermes_cache_tokens_saved_total'), before + 15);
  });

  it('books them for whoever had the answer, also of streams that were joined, and no money', async () => {
    upstream.on('fake', (reply, { body }) => reply.completion({ content: `echo: ${body.messages.at(-1)?.content}` }, { delayMs: 30 }));
    const stream = { stream: true, stream_options: { include_usage: true } };
    await Promise.all(Array.from({ length: 5 }, () => ask('books', { ...stream, user: 'saver' })));
    await ask('books', { user: 'saver' });
    const { rows } = (await app.fetch('/admin/costs?by=user,model,upstream')).json as { rows: Record<string, unknown>[] };
    const { calls, input_tokens, output_tokens, saved_tokens } = rows.find((row) => row.user === 'saver') ?? {};
    assert.deepEqual([calls, Number(input_tokens) + Number(output_tokens), saved_tokens], [1, 15, 5 * 15]);
    assert.equal(rows.filter((row) => row.user === 'saver').length, 1);
  });

  it('serves a stream from a whole answer and a whole answer from a stream', async () => {
    const usage = { stream: true, stream_options: { include_usage: true } };
    const streamed = await ask('both ways', usage);
    const whole = await ask('both ways');
    const again = await ask('both ways', usage);
    assert.deepEqual([streamed, whole, again].map(state), ['miss', 'hit', 'hit']);
    assert.deepEqual([streamed, whole, again].map(saidIn), Array(3).fill('echo: both ways'));
    assert.equal(events(again).at(-1), '[DONE]');
    assert.deepEqual((events(again).at(-2) as { usage: object }).usage, (events(streamed).at(-2) as { usage: object }).usage);
    assert.equal((whole.json.usage as { total_tokens: number }).total_tokens, 15);
    assert.equal(upstream.calls.length, 1);
  });

  it('has no part in requests with another temperature, unless they ask for it', async () => {
    for (const more of [{ temperature: 0.7 }, { temperature: undefined }]) {
      assert.deepEqual([await ask('warm', more), await ask('warm', more)].map(state), [null, null]);
    }
    const use = { 'x-hermes-cache': 'use' };
    assert.deepEqual([await ask('warm', { temperature: 0.7 }, use), await ask('warm', { temperature: 0.7 }, use)].map(state), ['miss', 'hit']);
    assert.equal((await ask('warm', {}, { 'x-hermes-cache': 'perhaps' })).status, 400);
  });

  it('never shares between principals, nor between users', async () => {
    const theirs = { authorization: `Bearer ${OTHER}` };
    assert.deepEqual(
      [await ask('mine'), await ask('mine', {}, theirs), await ask('mine', { user: 'u1' }), await ask('mine', { user: 'u2' })].map(state),
      Array(4).fill('miss'),
    );
    assert.deepEqual([await ask('mine'), await ask('mine', {}, theirs)].map(state), ['hit', 'hit']);
    assert.equal(upstream.calls.length, 4);
  });

  it('tells requests apart by everything that is in them', async () => {
    const system = { messages: [{ role: 'system', content: 'be brief' }, ...user('base')] };
    for (const more of [{}, { max_tokens: 5 }, { seed: 1 }, system, { messages: user('base ') }]) assert.equal(state(await ask('base', more)), 'miss');
    assert.equal(state(await ask('base', { seed: 1 })), 'hit');
  });

  it('honours no-store, no-cache and max-age', async () => {
    assert.deepEqual([await ask('fresh', {}, { 'cache-control': 'no-store' }), await ask('fresh')].map(state), [null, 'miss']);
    assert.equal(state(await ask('fresh', {}, { 'cache-control': 'no-cache' })), 'miss');
    assert.equal(state(await ask('fresh', {}, { 'cache-control': 'max-age=0' })), 'miss');
    assert.equal(state(await ask('fresh', {}, { 'cache-control': 'max-age=50' })), 'hit');
    assert.equal(state(await ask('fresh', {}, { 'x-hermes-cache': 'off' })), null);
  });

  it('stays away from sessions and tools, unless asked; from tools with side effects always', async () => {
    const use = { 'x-hermes-cache': 'use' };
    const functions = { tools: [{ type: 'function', function: { name: 'run', parameters: { type: 'object', properties: {} } } }] };
    for (const more of [{ session_id: 's-1' }, functions]) assert.equal(state(await ask('away', more)), null);
    assert.deepEqual([await ask('asked', functions, use), await ask('asked', functions, use)].map(state), ['miss', 'hit']);
    assert.deepEqual([await ask('reads', { tools: ['order.query'] }), await ask('reads', { tools: ['order.query'] })].map(state), ['miss', 'hit']);
    assert.equal(state(await ask('pays', { tools: ['refund.apply'] }, use)), null);
  });

  it('stores the turn of a session that it answered', async () => {
    const use = { 'x-hermes-cache': 'use' };
    assert.equal(state(await ask('remember', { session_id: 'a' }, use)), 'miss');
    assert.equal(state(await ask('remember', { session_id: 'b' }, use)), 'hit');
    await ask('what was it', { session_id: 'b' });
    assert.deepEqual(
      upstream.calls.at(-1)?.body.messages.map(({ content }) => content),
      ['remember', 'echo: remember', 'what was it'],
    );
  });
});

describe('answers on their way', () => {
  it('makes one upstream call for a crowd of equal requests, streams and whole ones', async () => {
    upstream.on('fake', (reply) => reply.completion({ content: 'one for all' }, { delayMs: 100 }));
    const replies = await Promise.all(Array.from({ length: 120 }, (_, index) => ask('crowd', index % 2 ? { stream: true } : {})));
    assert.ok(replies.every((reply) => saidIn(reply) === 'one for all'));
    assert.equal(upstream.calls.length, 1);
    assert.equal(replies.filter((reply) => state(reply) === 'miss').length, 1);
    assert.equal(new Set(replies.map(({ headers }) => headers.get('x-hermes-request-id'))).size, 120);
  });

  it('does not keep failures, answers that broke off, and empty ones', async () => {
    upstream.on('failing', (reply, { body, earlier }) => {
      if (JSON.stringify(body).includes('refused')) return reply.error(400);
      if (JSON.stringify(body).includes('filtered')) return reply.completion({ content: 'no' }, { finish: 'content_filter' });
      return earlier % 2 === 0 ? reply.stream([{ content: 'half' }, { error: { message: 'gone' } }], { done: false }) : reply.completion({ content: 'whole' });
    });
    for (const text of ['refused', 'filtered']) {
      await ask(text, { model: 'failing' });
      assert.notEqual(state(await ask(text, { model: 'failing' })), 'hit', text);
    }
    await ask('broken', { model: 'failing', stream: true });
    assert.notEqual(state(await ask('broken', { model: 'failing', stream: true })), 'hit');
  });

  it('goes on for those who stay when the first leaves, and stops when the last does', async () => {
    upstream.on('fake', (reply) => reply.stream([...Array(8).fill({ content: 'x' }), 'stop'], { delayMs: 30 }));
    const leaving = new AbortController();
    const send = (text: string, signal?: AbortSignal) =>
      fetch(`${app.base}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'fake', temperature: 0, stream: true, messages: user(text) }),
        ...(signal ? { signal } : {}),
      });
    const first = send('leader', leaving.signal);
    await upstream.until(() => upstream.calls.length === 1);
    const second = await send('leader');
    await first;
    leaving.abort();
    assert.match(await second.text(), /DONE/);
    assert.equal(upstream.calls.length, 1);
    const alone = new AbortController();
    await send('alone', alone.signal);
    alone.abort();
    await upstream.until(() => upstream.calls.at(-1)?.aborted === true);
    upstream.on('fake', (reply) => reply.completion({ content: 'later' }));
    assert.equal(saidIn(await ask('alone')), 'later');
  });

  it('is still counted by limits', async () => {
    const limited = { authorization: 'Bearer sk-limited-2c4e6f8a1b3d5c7e' };
    assert.deepEqual([await ask('limits', {}, limited), await ask('limits', {}, limited)].map(state), ['miss', 'hit']);
    assert.equal((await ask('limits', {}, limited)).status, 429);
  });
});

describe('without a cache block', () => {
  it('the layer is not there', async () => {
    const bare = await startApp({});
    const plugins = (await bare.fetch('/admin/plugins')).json.data as { name: string; hooks: string[] }[];
    assert.deepEqual(plugins.find(({ name }) => name === 'cache')?.hooks, []);
    assert.equal((await bare.chat({ messages: user('hi'), temperature: 0 })).headers.get('x-hermes-cache'), null);
    await bare.stop();
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Reply, type RunningApp, startApp, user } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';

const PIECE = 'x'.repeat(1000);

describe('an answer that must be known as a whole while it streams', () => {
  let upstream: FakeUpstream;
  let app: RunningApp;
  before(async () => {
    upstream = await createFakeUpstream();
    // Without an end: the upstream goes on until it is cut.
    upstream.on('endless', async (reply, { body }) => {
      const inCall = body.messages.some(({ content }) => content === 'call');
      reply.open();
      const opened = { tool_calls: [{ index: 0, id: 'call_1', type: 'function' as const, function: { name: 'order__query', arguments: '{"a":"' } }] };
      const piece = inCall ? { tool_calls: [{ index: 0, function: { arguments: PIECE } }] } : { content: PIECE };
      await reply.stream([{ role: 'assistant', content: inCall ? null : '' }, ...(inCall ? [opened] : [])], { done: false, end: false });
      while (!reply.response.destroyed) await reply.stream(Array(10).fill(piece), { done: false, end: false, delayMs: 1 });
    });
    upstream.on('long', (reply) => reply.stream([...Array(400).fill({ content: 'a word ' }), 'stop']));
    app = await startApp(
      {
        models: ['endless', 'long'].map((id) => ({ id, provider: 'openai', model_name: id, api_base: upstream.url, api_key_env: 'UP_KEY' })),
        tools: [{ id: 'order.query', endpoint: `http://127.0.0.1:${upstream.port}/tools`, side_effects: false }],
        server: { max_event_bytes: 65_536 },
      },
      { env: { UP_KEY: 'sk-up' } },
    );
  });
  after(async () => {
    await app.stop();
    await upstream.close();
  });

  const isCut = async (reply: Reply): Promise<void> => {
    assert.equal(reply.status, 200);
    assert.match(reply.text, /data: \{"error":\{"message":"The answer is too large to be put together as a whole/);
    assert.doesNotMatch(reply.text, /\[DONE\]/);
    assert.ok(reply.text.length < 10 * 65_536, `${reply.text.length} characters went out`);
    await upstream.until(() => upstream.calls.at(-1)?.closedAt !== undefined);
  };

  for (const text of ['say', 'call'])
    test(`a round of tools is bounded: the model goes on to ${text}`, async () =>
      isCut(await app.chat({ model: 'endless', stream: true, tools: ['order.query'], messages: user(text) })));

  test('a turn of a session is bounded, and not stored', async () => {
    await isCut(await app.chat({ model: 'endless', stream: true, session_id: 'endless', messages: user('say') }));
    assert.equal((await app.fetch('/admin/sessions/endless')).status, 404);
  });

  test('what counts is what was said, not the events that brought it', async () => {
    const reply = await app.chat({ model: 'long', stream: true, tools: ['order.query'], session_id: 'long', messages: user('go') });
    assert.ok(reply.text.length > 65_536, 'the events are larger than the bound');
    assert.match(reply.text, /data: \[DONE\]\n\n$/);
  });
});

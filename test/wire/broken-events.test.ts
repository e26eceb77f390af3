import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startApp, user } from '../app-kit.ts';
import { createFakeUpstream, DONE, toEventText } from '../fake-upstream.ts';

const BROKEN = 'data: {"id":"c","object":"chat.completion.chunk","model":"m","choice"delta":{"content":" lost"},"finish_reason":null}]}\n\n';

test('an event of an upstream that only looks like one is relayed as it came, makes no error of hermes, and its call is booked', async () => {
  const upstream = await createFakeUpstream();
  const app = await startApp(
    { models: [{ id: 'm', provider: 'openai', model_name: 'm', api_base: upstream.url, api_key_env: 'UP' }] },
    { env: { UP: 'sk-up' } },
  );
  try {
    const good = toEventText({ role: 'assistant', content: '' }) + toEventText({ content: 'kept' });
    upstream.on('m', (reply) => reply.bytes(good, BROKEN + toEventText('stop') + DONE).end());
    const whole = await app.chat({ model: 'm', stream: true, messages: user('hi') });
    assert.equal(whole.text, good + BROKEN + toEventText('stop') + DONE);
    upstream.on('m', (reply) => reply.bytes(good, BROKEN).end());
    const cut = await app.chat({ model: 'm', stream: true, messages: user('hi') });
    assert.match(cut.text, /"code":"upstream_error"\}\}\n\n$/);
    const { total } = (await app.fetch('/admin/costs')).json as { total?: { calls: number; estimated_calls: number } };
    assert.deepEqual([total?.calls, total?.estimated_calls], [2, 2]);
  } finally {
    await app.stop();
    await upstream.close();
  }
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startApp, user } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';

test('reasoning goes back to the vendor that made it, is stripped for others, and stays in the history', async () => {
  const vendors = { deepseek: await createFakeUpstream(), qwen: await createFakeUpstream() };
  const answering = (name: string, fake: FakeUpstream): void =>
    fake.on(name, (reply, call) => {
      const message = { reasoning_content: `${name} thought`, content: `${name} said` };
      return call.body.stream
        ? reply.stream([{ role: 'assistant', content: '' }, { reasoning_content: message.reasoning_content }, { content: message.content }, 'stop'])
        : reply.completion(message);
    });
  for (const [name, fake] of Object.entries(vendors)) answering(`${name}-1`, fake);
  const model = (name: keyof typeof vendors, more: object = {}) => ({
    id: name,
    provider: 'openai',
    model_name: `${name}-1`,
    api_base: vendors[name].url,
    api_key_env: 'UP_KEY',
    ...more,
  });
  const app = await startApp({ models: [model('deepseek'), model('qwen'), model('qwen', { id: 'greedy', reasoning: 'send' })] }, { env: { UP_KEY: 'sk-up' } });
  const ask = (name: string, stream: boolean) => app.chat({ session_id: 'thoughts', model: name, stream, messages: user('go on') });
  const sent = (fake: FakeUpstream): unknown[] =>
    fake.calls
      .at(-1)
      ?.body.messages.filter(({ role }) => role === 'assistant')
      .map((message) => message.reasoning_content) ?? [];
  try {
    await ask('deepseek', false);
    await ask('qwen', true);
    assert.deepEqual(sent(vendors.qwen), [undefined]);
    await ask('deepseek', true);
    assert.deepEqual(sent(vendors.deepseek), ['deepseek-1 thought', undefined]);
    await ask('greedy', false);
    assert.deepEqual(sent(vendors.qwen), ['deepseek-1 thought', 'qwen-1 thought', 'deepseek-1 thought']);
    assert.ok([...vendors.qwen.calls, ...vendors.deepseek.calls].every(({ raw }) => !raw.includes('reasoning_by')));
  } finally {
    await app.stop();
    await Promise.all(Object.values(vendors).map((fake) => fake.close()));
  }
});

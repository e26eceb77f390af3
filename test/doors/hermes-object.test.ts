import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { KEY, type RunningApp, startApp } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { createFakeAnthropic, type FakeAnthropic } from '../providers/fake-anthropic.ts';

const VERBOSE = { headers: { 'x-hermes-verbose': '1' } };

describe('the hermes object at the doors of other forms', () => {
  let openai: FakeUpstream;
  let anthropic: FakeAnthropic;
  let app: RunningApp;
  before(async () => {
    openai = await createFakeUpstream();
    anthropic = await createFakeAnthropic(() => [{ type: 'text', text: 'hello' }]);
    openai.on('gpt-fake', (reply) => reply.completion({ content: 'hello' }));
    app = await startApp(
      {
        models: [
          { id: 'gpt', provider: 'openai', model_name: 'gpt-fake', api_base: openai.url, api_key_env: 'UP_KEY' },
          { id: 'claude', provider: 'anthropic', model_name: 'claude-sonnet-4-5', api_base: anthropic.url, api_key_env: 'ANT_KEY', max_tokens: 4000 },
        ],
      },
      { env: { UP_KEY: 'sk-up', ANT_KEY: 'sk-ant' } },
    );
  });
  after(async () => {
    await app.stop();
    await Promise.all([openai.close(), anthropic.close()]);
  });
  const check = (hermes: unknown, model: string): void => {
    const { model: told, upstream, attempts, request_id, tokens } = Object(hermes);
    assert.deepEqual([told, upstream, attempts, typeof request_id], [model, model, 1, 'string']);
    assert.ok(tokens.output > 0);
  };

  for (const model of ['gpt', 'claude']) {
    test(`is on a response, whole and streamed, from ${model}; not on the one that is kept`, async () => {
      const client = new OpenAI({ apiKey: KEY, baseURL: `${app.base}/v1`, maxRetries: 0 });
      const asked = { model, input: 'hi' };
      const whole = await client.responses.create(asked, VERBOSE);
      const streamed = await client.responses.stream(asked, VERBOSE).finalResponse();
      for (const response of [whole, streamed]) {
        check(Reflect.get(response, 'hermes'), model);
        assert.equal(response.output_text, 'hello');
        assert.equal('hermes' in (await client.responses.retrieve(response.id)), false);
      }
      for (const response of [await client.responses.create(asked), await client.responses.stream(asked).finalResponse()])
        assert.equal('hermes' in response, false);
      const { json } = await app.post('/v1/responses', { ...asked, user_level: 'default' });
      check(json.hermes, model);
    });

    test(`is on a message, and on a stream's last event, from ${model}`, async () => {
      const client = new Anthropic({ apiKey: KEY, baseURL: app.base, maxRetries: 0 });
      const asked = { model, max_tokens: 100, messages: [{ role: 'user' as const, content: 'hi' }] };
      check(Reflect.get(await client.messages.create(asked, VERBOSE), 'hermes'), model);
      const stream = client.messages.stream(asked, VERBOSE);
      const stops: unknown[] = [];
      for await (const event of stream) if (event.type === 'message_stop') stops.push(event);
      const message = await stream.finalMessage();
      assert.deepEqual(
        message.content.map((block) => block.type === 'text' && block.text),
        ['hello'],
      );
      check(Object(stops[0]).hermes, model);
    });
  }

  test('stands behind the bytes of an upstream of the same form, which are its own; without it, nothing is added', async () => {
    const post = (stream: boolean, headers?: Record<string, string>) =>
      app.post('/v1/messages', { model: 'claude', max_tokens: 9, stream, messages: [{ role: 'user', content: 'hi' }] }, headers);
    for (const stream of [false, true]) {
      assert.equal((await post(stream)).text, anthropic.sent.at(-1));
      const { text } = await post(stream, VERBOSE.headers);
      const own = (anthropic.sent.at(-1) ?? '').replace(stream ? /"type":\s*"message_stop"\s*\}\s*$/ : /\}\s*$/, '');
      assert.ok(text.startsWith(own), text);
      assert.match(text.slice(own.length), /"hermes":\{"request_id"/);
    }
  });
});

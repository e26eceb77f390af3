import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import OpenAI from 'openai';
import { KEY, type RunningApp, startApp } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';

describe('what stands beside the Responses door', () => {
  let upstream: FakeUpstream;
  let app: RunningApp;
  let client: OpenAI;
  before(async () => {
    upstream = await createFakeUpstream();
    const model = { provider: 'openai', api_base: upstream.url, api_key_env: 'UP_KEY' };
    app = await startApp(
      {
        models: [
          { ...model, id: 'gpt', model_name: 'gpt-fake' },
          { ...model, id: 'claude', model_name: 'claude-fake' },
        ],
      },
      { env: { UP_KEY: 'sk-up' } },
    );
    client = new OpenAI({ apiKey: KEY, baseURL: `${app.base}/v1`, maxRetries: 0 });
  });
  after(async () => {
    await app.stop();
    await upstream.close();
  });
  const count = async (body: object): Promise<number> => {
    const { object, input_tokens } = await client.responses.inputTokens.count({ model: 'claude', ...body });
    assert.equal(object, 'response.input_tokens');
    return input_tokens;
  };

  test("counts its input by itself, for any vendor's model, with the conversation that it goes on with", async () => {
    const long = 'word '.repeat(200);
    const [short, more] = [await count({ input: 'hi' }), await count({ input: long })];
    assert.ok(short > 3 && short < 20 && more > short + 150, `${short}, ${more}`);
    assert.ok((await count({ input: 'hi', model: 'gpt' })) <= short);
    const first = await client.responses.create({ model: 'gpt', input: long });
    const [item] = first.output;
    const asked = upstream.calls.length;
    assert.ok((await count({ input: 'hi', previous_response_id: first.id })) > more + short);
    assert.ok(
      (await count({
        input: [
          { type: 'item_reference', id: item?.id },
          { role: 'user', content: 'hi' },
        ],
      })) > more,
    );
    assert.equal(upstream.calls.length, asked);
    await assert.rejects(count({ model: 'nowhere', input: 'hi' }), OpenAI.NotFoundError);
    await assert.rejects(count({ input: [{ type: 'item_reference', id: 'msg_1' }] }), OpenAI.NotFoundError);
    assert.equal((await app.fetch('/v1/responses/input_tokens')).status, 405);
  });
});

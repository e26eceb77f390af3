import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import OpenAI from 'openai';
import { KEY, type RunningApp, startApp, user } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { sleep, type Toolbox, toolbox, toolOf } from './tools-kit.ts';

let up: FakeUpstream;
let box: Toolbox;
let app: RunningApp;
let client: OpenAI;
const asked = (text: string) => up.calls.filter(({ body }) => body.messages[0]?.content === text);

before(async () => {
  up = await createFakeUpstream();
  up.on('slow', async (reply, call) => {
    const ran = call.body.messages.some(({ role }) => role === 'tool');
    await sleep(call.body.messages[0]?.content === 'quick' ? 0 : 400);
    if (ran) return reply.completion({ content: 'refunded' });
    const name = call.body.tools?.[0]?.function.name ?? '';
    return reply.completion({ tool_calls: [{ id: 'call_1', type: 'function', function: { name, arguments: '{"order_id":"20240515"}' } }] });
  });
  box = await toolbox({ 'refund.apply': async ({ body }) => sleep(200).then(() => ({ refunded: body.params.order_id })) });
  app = await startApp(
    {
      models: [{ id: 'm', provider: 'openai', model_name: 'slow', api_base: up.url, api_key_env: 'UP_KEY' }],
      default_model: 'm',
      tools: [toolOf(box, 'refund.apply', { side_effects: true })],
      route_rules: [{ id: 'default', match: '.*', model: 'm', tools: ['refund.apply'] }],
    },
    { env: { UP_KEY: 'sk-up' } },
  );
  client = new OpenAI({ baseURL: `${app.base}/v1`, apiKey: KEY, timeout: 600, maxRetries: 5 });
});
after(async () => {
  await app.stop();
  await box.close();
  await up.close();
});

describe('the plain openai SDK', () => {
  test('whose time-out is shorter than the answer gets it on its own retry: one refund, no model call made twice', async () => {
    const answer = await client.chat.completions.create({ model: 'auto', messages: [{ role: 'user', content: 'impatient' }] });
    assert.equal(answer.choices[0]?.message.content, 'refunded');
    assert.deepEqual([box.ran('refund.apply').length, asked('impatient').length], [1, 2]);
    assert.deepEqual(up.violations, []);
  });

  test('reads a stream that goes through a tool on one connection', async () => {
    const patient = client.withOptions({ timeout: 10_000 });
    const runner = patient.chat.completions.stream({ model: 'auto', messages: [{ role: 'user', content: 'quick' }] });
    const whole = await runner.finalChatCompletion();
    assert.deepEqual(
      [whole.choices[0]?.message.content, whole.choices[0]?.finish_reason, whole.choices[0]?.message.tool_calls],
      ['refunded', 'stop', undefined],
    );
  });
});

test('a replay says so in its header and comes in the form that is asked for', async () => {
  const body = { request_id: 'r-1', messages: user('quick') };
  const first = await app.chat(body);
  const again = await app.chat(body);
  const streamed = await app.chat({ ...body, stream: true });
  assert.deepEqual(
    [first, again, streamed].map(({ headers }) => [headers.get('x-hermes-idempotent-replay'), headers.get('x-hermes-request-id')]),
    [
      [null, 'r-1'],
      ['true', 'r-1'],
      ['true', 'r-1'],
    ],
  );
  assert.deepEqual(again.json.choices, first.json.choices);
  assert.ok(streamed.text.trimEnd().endsWith('data: [DONE]'));
  assert.equal((await app.chat({ ...body, messages: user('other') })).status, 422);
});

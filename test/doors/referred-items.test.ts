import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type OpenAI from 'openai';
import { type RunningApp, startApp } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { view } from '../sessions/session-kit.ts';

type Item = OpenAI.Responses.ResponseInputItem;
const OTHER = 'sk-other-7b1e5c9d3f2a4860';
const refer = ({ id }: { id?: string | null }): Item => ({ type: 'item_reference', id: id ?? '' });
const ask = (content: string): Item => ({ role: 'user', content });
const output = (call_id: string, text: string): Item => ({ type: 'function_call_output', call_id, output: text });

describe('items of earlier answers, named by their ids', () => {
  let upstream: FakeUpstream;
  let app: RunningApp;
  let calls = 0;
  before(async () => {
    upstream = await createFakeUpstream();
    upstream.on('gpt-fake', (reply, { body }) => {
      const last = body.messages.at(-1);
      if (last?.role === 'tool') return reply.completion({ content: `it is ${String(last.content)}` });
      if (last?.content !== 'weather?') return reply.completion({ content: 'hm' });
      const call = (city: string) => ({ id: `call_${++calls}`, type: 'function', function: { name: 'weather', arguments: `{"city":"${city}"}` } });
      return reply.completion({ content: 'let me look', reasoning_content: 'think', tool_calls: [call('Rome'), call('Oslo')] });
    });
    app = await startApp(
      {
        models: [{ id: 'gpt', provider: 'openai', model_name: 'gpt-fake', api_base: upstream.url, api_key_env: 'UP_KEY', reasoning: 'send' }],
        auth: { keys: [{ id: 'other', key_env: 'OTHER', service: 'default', project: 'default', admin: true }] },
      },
      { env: { UP_KEY: 'sk-up', OTHER } },
    );
  });
  after(async () => {
    await app.stop();
    await upstream.close();
  });
  const tools = [{ type: 'function', name: 'weather', parameters: { type: 'object', properties: {} }, strict: false }];
  const create = async (input: unknown, more: object = {}): Promise<OpenAI.Responses.Response> => {
    const { json, status, text } = await app.post('/v1/responses', { model: 'gpt', input, tools, ...more });
    assert.equal(status, 200, text);
    return json as unknown as OpenAI.Responses.Response;
  };
  const sent = (): string[] => view(upstream.calls.at(-1)?.body.messages ?? []);
  const idOf = (call: Item | undefined): string => (call && 'call_id' in call ? String(call.call_id) : '');

  for (const [name, more] of [
    ['nothing else', () => ({})],
    ['the answer that they go on with', (id: string) => ({ previous_response_id: id })],
    ['store: false', () => ({ store: false })],
    ['a session', () => ({ session_id: `s-${calls}` })],
  ] as [string, (id: string) => object][])
    test(`stand where they were said, beside ${name}`, async () => {
      const session = more('');
      const first = await create([ask('weather?')], 'session_id' in session ? session : {});
      const [reasoning, message, rome, oslo] = first.output;
      assert.ok(reasoning && message && rome && oslo);
      const results = [rome, oslo].map((call) => output(idOf(call as Item), 'sunny'));
      const input = [ask('weather?'), ...first.output.map(refer), ...results];
      const second = await create(input, 'session_id' in session ? session : more(first.id));
      const history = ['u:weather?', `a:let me look+${idOf(rome as Item)}+${idOf(oslo as Item)}`, 't:sunny', 't:sunny'];
      assert.deepEqual(sent(), history);
      assert.equal(upstream.calls.at(-1)?.body.messages[1]?.reasoning_content, 'think');
      if ('store' in session) return;
      await create([...input, ...second.output.map(refer), ask('thanks')], 'session_id' in session ? session : more(second.id));
      assert.deepEqual(sent(), [...history, 'a:it is sunny', 'u:thanks']);
    });

  test('are one message with what is written out beside them', async () => {
    const first = await create([ask('weather?')]);
    const [reasoning, message, rome, oslo] = first.output as Item[];
    assert.ok(reasoning && message && rome && oslo);
    const results = [rome, oslo].map((call) => output(idOf(call), 'sunny'));
    const { id } = message as { id: string };
    for (const between of [
      [reasoning, { type: null, id }, rome, refer(oslo as { id: string })],
      [refer(reasoning as { id: string }), message, refer(rome as { id: string }), oslo],
    ]) {
      await create([ask('weather?'), ...between, ...results]);
      assert.deepEqual(sent(), ['u:weather?', `a:let me look+${idOf(rome)}+${idOf(oslo)}`, 't:sunny', 't:sunny']);
      assert.equal(upstream.calls.at(-1)?.body.messages[1]?.reasoning_content, 'think');
    }
  });

  test('are a 404 that says why where they are not kept, or were given to somebody else', async () => {
    const first = await create([ask('hi')]);
    const [item] = first.output;
    assert.ok(item);
    const aside = await create([ask('hi')], { store: false });
    const asked = upstream.calls.length;
    for (const [id, key] of [
      [item.id, OTHER],
      [aside.output[0]?.id, undefined],
      ['msg_68af4030592c81938ec0a5fbab4a3e9f', undefined],
      [`${String(item.id).slice(0, -1)}7`, undefined],
    ]) {
      const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
      const { status, json } = await app.post('/v1/responses', { model: 'gpt', input: [ask('x'), { type: 'item_reference', id }] }, headers);
      const { message, param } = json.error as { message: string; param: string };
      assert.deepEqual([status, param], [404, 'input']);
      assert.ok(message.startsWith(`Item with id '${id}' not found.`) && message.includes('store: true'), message);
    }
    assert.equal((await app.post('/v1/responses', { model: 'gpt', input: [{ type: 'item_reference' }] })).status, 400);
    assert.equal(upstream.calls.length, asked);
  });
});

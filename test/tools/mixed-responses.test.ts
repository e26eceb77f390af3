import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type OpenAI from 'openai';
import { type RunningApp, startApp } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { view } from '../sessions/session-kit.ts';
import { type Toolbox, toolbox, toolOf } from './tools-kit.ts';

let up: FakeUpstream;
let box: Toolbox;
let app: RunningApp;
before(async () => {
  up = await createFakeUpstream();
  up.on('gpt-fake', (reply, { body }) => {
    if (body.messages.at(-1)?.role === 'tool') return reply.completion({ content: 'both' });
    const call = (id: string, name: string) => ({ id, type: 'function', function: { name, arguments: '{}' } });
    return reply.completion({ tool_calls: [call('call_s', 'order__query'), call('call_c', 'weather')] });
  });
  box = await toolbox({ 'order.query': () => 'shipped' });
  app = await startApp(
    {
      models: [{ id: 'gpt', provider: 'openai', model_name: 'gpt-fake', api_base: up.url, api_key_env: 'UP_KEY' }],
      tools: [toolOf(box, 'order.query', { side_effects: false, parameters: { type: 'object' } })],
    },
    { env: { UP_KEY: 'sk-up' } },
  );
});
after(async () => {
  await app.stop();
  await Promise.all([up.close(), box.close()]);
});

describe('an answer that calls tools of both sides, for a Responses client', () => {
  const question = { role: 'user', content: 'both?' };
  const result = { type: 'function_call_output', call_id: 'call_c', output: 'sunny' };
  const everything = ({ output }: OpenAI.Responses.Response): object => ({ input: [question, ...output, result] });
  const references = ({ output }: OpenAI.Responses.Response): object => ({
    input: [question, ...output.map(({ id }) => ({ type: 'item_reference', id })), result],
  });
  const newest = ({ id }: OpenAI.Responses.Response): object => ({ input: [result], previous_response_id: id });
  for (const [name, more, second] of [
    ['sends everything again', {}, everything],
    ['sends references to everything', {}, references],
    ['goes on with the answer', {}, newest],
    ['goes on with the answer a second time', { twice: true }, newest],
    ['keeps nothing', { store: false }, everything],
    ['names a session', { session_id: 'mixed' }, newest],
  ] as [string, { twice?: boolean }, typeof everything][])
    test(`keeps the server's result where it ${name}`, async () => {
      const { twice, ...fields } = more;
      const create = async (body: object): Promise<OpenAI.Responses.Response> => {
        const asked = { model: 'gpt', tools: [{ type: 'function', name: 'weather', parameters: { type: 'object' } }], ...fields, ...body };
        const { json, status, text } = await app.post('/v1/responses', asked, { 'x-hermes-tools': 'order.query' });
        assert.equal(status, 200, text);
        return json as unknown as OpenAI.Responses.Response;
      };
      const first = await create({ input: [question] });
      assert.deepEqual(
        first.output.map((item) => item.type === 'function_call' && item.name),
        ['weather'],
      );
      if (twice) await create(second(first));
      await create(second(first));
      const sent = up.calls.at(-1)?.body.messages ?? [];
      assert.deepEqual(view(sent).slice(0, 2), ['u:both?', 'a:+call_s+call_c']);
      assert.match(String(sent[2]?.content), /shipped/);
      assert.deepEqual(view(sent).slice(3), ['t:sunny']);
    });
});

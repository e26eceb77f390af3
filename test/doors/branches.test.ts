import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type OpenAI from 'openai';
import { type RunningApp, startApp } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { temporaryFolder } from '../services.ts';
import { view } from '../sessions/session-kit.ts';

type Response = OpenAI.Responses.Response;
const result = (text: string) => [{ type: 'function_call_output', call_id: 'call_1', output: text }];

describe('going on from an earlier response', () => {
  let upstream: FakeUpstream;
  let app: RunningApp;
  before(async () => {
    upstream = await createFakeUpstream();
    upstream.on('gpt-fake', (reply, { body }) => {
      const last = body.messages.at(-1);
      const calls = [{ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{}' } }];
      return reply.completion(last?.content === 'weather?' ? { tool_calls: calls } : { content: `re: ${String(last?.content)}` });
    });
    app = await startApp(
      { models: [{ id: 'gpt', provider: 'openai', model_name: 'gpt-fake', api_base: upstream.url, api_key_env: 'UP_KEY' }] },
      { env: { UP_KEY: 'sk-up', DATABASE_URL: `sqlite:///${temporaryFolder()}/hermes.db` } },
    );
  });
  after(async () => {
    await app.stop();
    await upstream.close();
  });
  const create = async (input: unknown, more: object = {}, headers: Record<string, string> = {}): Promise<Response> => {
    const { json, status, text } = await app.post('/v1/responses', { model: 'gpt', input, ...more }, headers);
    assert.equal(status, 200, text);
    return json as unknown as Response;
  };
  const streamed = async (input: unknown, previous_response_id: string): Promise<string> => {
    const { text } = await app.post('/v1/responses', { model: 'gpt', input, previous_response_id, stream: true });
    return /"id":"(resp_[^"]+)"/.exec(text)?.[1] ?? '';
  };
  const after_ = ({ id }: { id: string }) => ({ previous_response_id: id });
  const sent = (): string[] => view(upstream.calls.at(-1)?.body.messages ?? []);
  const sessionOf = (id: string): string => Buffer.from(id.split('_')[1] ?? '', 'base64url').toString();

  test('sees the history up to that response, and neither the other branch nor its results', async () => {
    const first = await create('weather?');
    const sunny = await create(result('a'), after_(first));
    assert.deepEqual(sent(), ['u:weather?', 'a:+call_1', 't:a']);
    const rainy = await create(result('b'), after_(first));
    assert.deepEqual(sent(), ['u:weather?', 'a:+call_1', 't:b']);
    const [x, y] = [await create('X', after_(sunny)), await create('Y', after_(sunny))];
    assert.deepEqual(sent(), ['u:weather?', 'a:+call_1', 't:a', 'a:re: a', 'u:Y']);
    for (const [of, branch] of [
      [x, ['t:a', 'a:re: a', 'u:X', 'a:re: X']],
      [y, ['t:a', 'a:re: a', 'u:Y', 'a:re: Y']],
      [rainy, ['t:b', 'a:re: b']],
    ] as [Response, string[]][]) {
      await create('on', after_(of));
      assert.deepEqual(sent(), ['u:weather?', 'a:+call_1', ...branch, 'u:on']);
    }
  });

  test('is a session of its own, whose answers are kept, given again and gone on with like others', async () => {
    const first = await create('one', { instructions: 'Be brief.' });
    await create('two', after_(first));
    const id = await streamed('instead', first.id);
    assert.notEqual(sessionOf(id), sessionOf(first.id));
    assert.deepEqual(sent(), ['s:Be brief.', 'u:one', 'a:re: one', 'u:instead']);
    assert.equal((await app.fetch(`/v1/responses/${id}`)).json.id, id);
    const items = (await app.fetch(`/v1/responses/${id}/input_items`)).json.data as { content: { text: string }[] }[];
    assert.deepEqual(
      items.map(({ content }) => content[0]?.text),
      ['instead'],
    );
    const shown = (await app.fetch(`/admin/sessions/${sessionOf(id)}`)).json as { messages: { content: string }[] };
    assert.deepEqual(
      shown.messages.map(({ content }) => content),
      ['one', 're: one', 'instead', 're: instead'],
    );
    const next = await create('next', after_({ id }));
    assert.equal(sessionOf(next.id), sessionOf(id));
    assert.equal((await app.fetch(`/v1/responses/${id}`, { method: 'DELETE' })).status, 200);
    await create('then', after_(next));
    assert.deepEqual(sent(), ['s:Be brief.', 'u:one', 'a:re: one', 'u:next', 'a:re: next', 'u:then']);
  });

  test('with store: false sees the same, and keeps nothing', async () => {
    const first = await create('one');
    await create('two', after_(first));
    const count = async (): Promise<unknown> => ((await app.fetch('/admin/sessions?limit=1000')).json.data as unknown[]).length;
    const before = await count();
    await create('aside', { ...after_(first), store: false });
    assert.deepEqual([sent(), await count()], [['u:one', 'a:re: one', 'u:aside'], before]);
  });

  test('doubles nothing where the whole conversation is sent along', async () => {
    const first = await create('one');
    await create('two', after_(first));
    const said = [{ role: 'user', content: 'one' }, ...first.output, { role: 'user', content: 'three' }];
    const third = await create(said, after_(first));
    assert.deepEqual(sent(), ['u:one', 'a:re: one', 'u:three']);
    await create([...said, ...third.output.map(({ id }) => ({ type: 'item_reference', id })), { role: 'user', content: 'four' }], after_(third));
    assert.deepEqual(sent(), ['u:one', 'a:re: one', 'u:three', 'a:re: three', 'u:four']);
  });

  test('twice under one key is one branch', async () => {
    const first = await create('one');
    await create('two', after_(first));
    const key = { 'idempotency-key': 'branch-1' };
    const [once, again] = [await create('three', after_(first), key), await create('three', after_(first), key)];
    assert.equal(once.id, again.id);
  });

  test('in a session that is named by hand another result takes the place of the first, with what came of it', async () => {
    const named = { session_id: 'by-hand' };
    await create('weather?', named);
    await create(result('a'), named);
    await create(result('b'), named);
    assert.deepEqual(sent(), ['u:weather?', 'a:+call_1', 't:b']);
    await create('on', named);
    assert.deepEqual(sent(), ['u:weather?', 'a:+call_1', 't:b', 'a:re: b', 'u:on']);
  });
});

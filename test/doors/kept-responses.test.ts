import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import OpenAI from 'openai';
import { KEY, type RunningApp, startApp } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { temporaryFolder, until } from '../services.ts';

const OTHER = 'sk-other-7b1e5c9d3f2a4860';
const PNG = 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const TOOL = { type: 'function' as const, name: 'get_weather', parameters: { type: 'object', properties: { city: { type: 'string' } } }, strict: false };

describe('responses that are asked for again', () => {
  let upstream: FakeUpstream;
  let app: RunningApp;
  const database = `sqlite:///${temporaryFolder()}/hermes.db`;
  const start = (): Promise<RunningApp> =>
    startApp(
      {
        models: [{ id: 'gpt', provider: 'openai', model_name: 'gpt-fake', api_base: upstream.url, api_key_env: 'UP_KEY', reasoning: 'send' }],
        auth: { keys: [{ id: 'other', key_env: 'OTHER', service: 'default', project: 'default', admin: true }] },
        tools: [{ id: 'order.query', endpoint: `http://127.0.0.1:${upstream.port}/tools`, side_effects: false }],
      },
      { env: { UP_KEY: 'sk-up', OTHER, DATABASE_URL: database } },
    );
  before(async () => {
    upstream = await createFakeUpstream();
    upstream.on('gpt-fake', (reply, { body, raw }) => {
      const results = body.messages.filter(({ role }) => role === 'tool').length;
      const heard = body.messages.filter(({ role }) => role === 'user').length;
      const call = (name: string) => ({ tool_calls: [{ id: `call_${results}`, type: 'function', function: { name, arguments: '{"city":"北京"}' } }] });
      if (raw.includes('#tools') && results === 0) return reply.completion({ content: 'let me look', reasoning_content: '想', ...call('get_weather') });
      if (raw.includes('#server') && results === 0) return reply.completion({ content: 'looking. ', ...call('order__query') });
      return reply.completion({ content: `heard ${heard}` });
    });
    app = await start();
  });
  after(async () => {
    await app.stop();
    await upstream.close();
  });
  const client = (apiKey = KEY): OpenAI => new OpenAI({ apiKey, baseURL: `${app.base}/v1`, maxRetries: 0, timeout: 30_000 });
  const create = (body: object, options?: OpenAI.RequestOptions): Promise<OpenAI.Responses.Response> =>
    client().responses.create({ model: 'gpt', input: 'hi', ...body }, options) as Promise<OpenAI.Responses.Response>;
  const bare = (response: object): unknown => {
    // What hermes says of a request is not part of its answer.
    const { output_text: _text, hermes: _hermes, ...rest } = JSON.parse(JSON.stringify(response));
    return rest;
  };
  const sessions = async (): Promise<string[]> =>
    ((await app.fetch('/admin/sessions?limit=1000')).json.data as { session_id: string }[]).map(({ session_id }) => session_id);
  const missing = (ask: Promise<unknown>): Promise<void> =>
    assert.rejects(ask, (error) => error instanceof OpenAI.NotFoundError && /not found/.test(error.message));

  for (const [name, body] of [
    ['a text', { instructions: 'Be brief.', metadata: { a: 'b' }, temperature: 0.5 }],
    ['calls of functions', { input: '#tools', tools: [TOOL] }],
    [
      'a picture',
      {
        input: [
          {
            role: 'user',
            content: [
              { type: 'input_text', text: 'look' },
              { type: 'input_image', image_url: PNG, detail: 'low' },
            ],
          },
        ],
      },
    ],
    ["rounds of hermes' own tools", { input: '#server' }],
    [
      'a long list of tools',
      { input: 'x', tools: Array.from({ length: 60 }, (_, index) => ({ ...TOOL, name: `tool_${index}`, description: 'what it does '.repeat(9) })) },
    ],
  ] as const)
    test(`are what was given: ${name}, whole and streamed`, async () => {
      const options = name.includes('own tools') ? { headers: { 'x-hermes-tools': 'order.query' } } : {};
      const whole = await create(body, options);
      assert.deepEqual(bare(await client().responses.retrieve(whole.id)), bare(whole));
      const streamed = await client()
        .responses.stream({ model: 'gpt', input: 'hi', ...body } as Parameters<OpenAI['responses']['stream']>[0], options)
        .finalResponse();
      assert.deepEqual(bare(await client().responses.retrieve(streamed.id)), withoutParsed(bare(streamed)));
    });

  test('with the items of their input, page by page', async () => {
    const first = await create({ input: '#tools', tools: [TOOL] });
    const output = [0, 1, 2].map((index) => ({
      type: 'function_call_output' as const,
      call_id: index === 0 ? 'call_0' : `call_x${index}`,
      output: `晴 ${index}`,
    }));
    const second = await create({ previous_response_id: first.id, input: [...output.slice(0, 1), { role: 'user', content: 'and now?' }] });
    const items = client().responses.inputItems;
    const all = await items.list(second.id, { order: 'asc' });
    assert.deepEqual(
      all.data.map(({ id: _id, ...item }) => item),
      [
        { type: 'function_call_output', status: 'completed', call_id: 'call_0', output: '晴 0' },
        { type: 'message', status: 'completed', role: 'user', content: [{ type: 'input_text', text: 'and now?' }] },
      ],
    );
    const paged: unknown[] = [];
    for await (const item of items.list(second.id, { limit: 1 })) paged.push(item);
    assert.deepEqual(paged, all.data.toReversed());
    const [only] = (await items.list(first.id)).data;
    assert.deepEqual(only && 'content' in only && only.content, [{ type: 'input_text', text: '#tools' }]);
    await assert.rejects(items.list(second.id, { after: 'msg_elsewhere' }), OpenAI.BadRequestError);
    await assert.rejects(items.list(second.id, { limit: 1000 }), OpenAI.BadRequestError);
  });

  test('are given to nobody else, not even of the same project or an admin', async () => {
    const { id } = await create({});
    await missing(client(OTHER).responses.retrieve(id));
    await missing(client(OTHER).responses.delete(id));
    await missing(client(OTHER).responses.inputItems.list(id).then());
    assert.equal((await client().responses.retrieve(id)).id, id);
    assert.equal((await app.fetch(`/v1/responses/${id}`, { headers: { authorization: 'Bearer sk-wrong' } })).status, 401);
  });

  test('are gone with their turn when they are deleted; the others of the conversation stay', async () => {
    const first = await create({ input: 'first' });
    const second = await create({ input: 'second', previous_response_id: first.id });
    const third = await create({ input: 'third', previous_response_id: second.id });
    const [session] = await sessions();
    await client().responses.delete(second.id);
    await missing(client().responses.retrieve(second.id));
    await missing(client().responses.delete(second.id));
    assert.equal((await client().responses.retrieve(third.id)).output_text, 'heard 3');
    await create({ input: 'fourth', previous_response_id: third.id });
    const texts = upstream.calls.at(-1)?.body.messages.map(({ content }) => content);
    assert.deepEqual(texts, ['first', 'heard 1', 'third', 'heard 3', 'fourth']);
    const shown = (await app.fetch(`/admin/sessions/${session}`)).json as { messages: unknown[] };
    assert.equal(shown.messages.length, 6);
  });

  test('are the whole session where they are all of it', async () => {
    const { id } = await create({ input: 'alone' });
    const [session] = await sessions();
    await client().responses.delete(id);
    assert.ok(!(await sessions()).includes(session ?? ''));
    await assert.rejects(
      create({ previous_response_id: id }),
      (error) => error instanceof OpenAI.BadRequestError && error.code === 'previous_response_not_found' && error.param === 'previous_response_id',
    );
  });

  test('are not kept with store: false, and nothing else is; what they go on with is read', async () => {
    const before = (await sessions()).length;
    const alone = await create({ store: false });
    assert.equal((await sessions()).length, before);
    await missing(client().responses.retrieve(alone.id));
    const first = await create({ input: 'first' });
    const aside = await create({ input: 'aside', previous_response_id: first.id, store: false });
    assert.equal(aside.output_text, 'heard 2');
    await missing(client().responses.retrieve(aside.id));
    await assert.rejects(create({ previous_response_id: aside.id }), OpenAI.BadRequestError);
    assert.equal((await create({ input: 'second', previous_response_id: first.id })).output_text, 'heard 2');
    for (const stream of [false, true]) await app.post('/v1/responses', { model: 'gpt', input: 'named', session_id: 'named', store: false, stream });
    assert.ok(!(await sessions()).includes('named'));
  });

  test('of a request that comes twice are one', async () => {
    const calls = upstream.calls.length;
    for (const stream of [false, true]) {
      const headers = { 'idempotency-key': `twice-${stream}` };
      const body = { model: 'gpt', input: `twice ${stream}`, stream };
      const replies = [await app.post('/v1/responses', body, headers), await app.post('/v1/responses', body, headers)];
      const ids = replies.map(({ text }) => /"id":"(resp_[^"]+)"/.exec(text)?.[1]);
      assert.equal(ids[0], ids[1]);
      assert.equal((await client().responses.retrieve(ids[0] ?? '')).id, ids[0]);
      assert.equal((await create({ input: 'go on', previous_response_id: ids[1] })).output_text, 'heard 2');
    }
    assert.equal(upstream.calls.length - calls, 4);
  });

  test('of a repeat by the SDK itself are those of the first try', async () => {
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    upstream.on('gpt-fake', (reply) => held.then(() => reply.completion({ content: 'once' })));
    const calls = upstream.calls.length;
    const again = (headers: Record<string, string> = {}) => app.post('/v1/responses', { model: 'gpt', input: 'slow' }, headers);
    const tries = [again()];
    await upstream.until(() => upstream.calls.length > calls);
    tries.push(again({ 'x-stainless-retry-count': '1' }));
    await until(async () => /^hermes_requests_in_flight 2$/m.test((await app.fetch('/metrics')).text), 'the repeat did not come');
    release();
    const [first, second] = (await Promise.all(tries)).map(({ json }) => json as unknown as OpenAI.Responses.Response);
    assert.ok(first && second);
    assert.equal(second.id, first.id);
    assert.equal(upstream.calls.length - calls, 1);
    assert.equal((await client().responses.retrieve(second.id)).output_text, 'once');
    assert.equal((await create({ input: 'go on', previous_response_id: second.id })).previous_response_id, first.id);
  });

  test('survive a restart', async () => {
    const { id } = await create({ input: 'lasting' });
    await app.stop();
    app = await start();
    assert.equal((await client().responses.retrieve(id)).id, id);
  });

  test('answer what they are not in plain words', async () => {
    const { id } = await create({});
    const status = async (method: string, path: string): Promise<number> => (await app.fetch(`/v1/responses/${path}`, { method })).status;
    assert.deepEqual(
      [await status('POST', id), await status('POST', `${id}/cancel`), await status('GET', `${id}/elsewhere`), await status('GET', `${id}?stream=true`)],
      [405, 400, 404, 400],
    );
    assert.equal(await status('GET', `resp_${'0'.repeat(32)}`), 404);
    assert.equal(await status('DELETE', `resp_bm93aGVyZQ_${'0'.repeat(32)}`), 404);
  });
});

function withoutParsed(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (key, member: unknown) => (key === 'parsed' || key === 'parsed_arguments' || key === 'output_parsed' ? undefined : member)),
  );
}

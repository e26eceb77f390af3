import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Reply, type RunningApp, startApp, user } from '../app-kit.ts';
import { type AnthropicCall, createFakeAnthropic, type FakeAnthropic } from '../providers/fake-anthropic.ts';
import { DONE, event, type Field, messageEnd, messageStart, named, openField, piece, sse, toldIn } from './field-kit.ts';

const BIG = '9007199254740993';
const TOOLS = [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }];
const call = (id: string, args = '{}', name = 'look') => ({ id, type: 'function', function: { name, arguments: args } });

let field: Field;
/** Strict: refuses what the Messages API refuses. */
let claude: FakeAnthropic;
let app: RunningApp;
let answer: (call: AnthropicCall) => ({ type: string } & Record<string, unknown>)[] = () => [{ type: 'text', text: 'ok' }];

before(async () => {
  field = await openField({ strict: ['strict'], openai: ['m'], anthropic: ['raw_claude'] });
  claude = await createFakeAnthropic((one) => answer(one));
  const gpt = { id: 'gpt', provider: 'openai', model_name: 'strict', api_base: field.fake.url, api_key_env: 'GPT_KEY' };
  app = await startApp(
    { models: [{ id: 'claude', provider: 'anthropic', model_name: 'claude-sonnet-4-5', api_base: claude.url, api_key_env: 'ANT_KEY' }, gpt] },
    { env: { ANT_KEY: 'sk-ant', GPT_KEY: 'sk-gpt' } },
  );
});
after(async () => {
  assert.deepEqual([claude.violations, field.fake.violations], [[], []]);
  await app.stop();
  await claude.close();
  await field.close();
});
const streamed = (model: string, more: object = {}): Promise<Reply> => field.app.chat({ model, stream: true, messages: user('hi'), tools: TOOLS, ...more });
const sentToClaude = (): AnthropicCall['body'] => claude.calls.at(-1)?.body as AnthropicCall['body'];

test('field report 8: integers above 2^53 keep their digits, in arguments and in bodies that are rewritten', async () => {
  const body = (model: string) =>
    `{"model":"${model}","session_id":"big-${model}","seed":${BIG},"tools":[{"type":"function","function":{"name":"look.up","parameters":{"type":"object","properties":{"id":{"type":"integer","minimum":${BIG}}}}}}],
    "messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look.up","arguments":"{\\"id\\":${BIG}}"}}]},{"role":"tool","tool_call_id":"c1","content":"${BIG}"}]}`;
  field.fake.on('strict', (reply) =>
    reply.json(
      `{"id":"c","object":"chat.completion","created":1,"model":"m","trace":${BIG},"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c2","type":"function","function":{"name":"look__up","arguments":"{\\"id\\": ${BIG}}"}}]},"finish_reason":"tool_calls"}]}`,
    ),
  );
  const reply = await app.post('/v1/chat/completions', body('gpt'));
  assert.equal(field.fake.calls.at(-1)?.raw.split(BIG).length, 5);
  assert.equal(reply.text.split(BIG).length, 3);
  assert.ok(reply.text.includes(`{\\"id\\": ${BIG}}`));
  answer = () => [{ type: 'tool_use', id: 'toolu_9', name: 'look__up', input: {} }];
  await app.post('/v1/chat/completions', body('claude'));
  assert.equal(claude.calls.at(-1)?.raw.split(BIG).length, 4);
  field.raw.answers.set(
    'raw_claude',
    (response) =>
      void response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(
          `{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[{"type":"tool_use","id":"t1","name":"look","input":{"id":${BIG}}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`,
        ),
  );
  assert.ok((await field.app.chat({ model: 'raw_claude', messages: user('x'), tools: TOOLS })).text.includes(`{\\"id\\":${BIG}}`));
});

describe('field report 9: a tool without parameters', () => {
  const opening = piece({ role: 'assistant', tool_calls: [{ index: 0, ...call('call_1', '') }] });
  const block = { type: 'content_block_start', index: 0, content_block: { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} } };
  const usage = { input_tokens: 1, output_tokens: 1 };
  const stop = { type: 'content_block_stop', index: 0 };
  const empty = { type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: '' } };
  for (const [what, model, stream] of [
    ['nothing after the empty text', 'm', event(opening) + event(piece({}, 'tool_calls')) + DONE],
    ['no fragment', 'raw_claude', named(messageStart(usage), block, stop, ...messageEnd(usage, 'tool_use'))],
    ['an empty fragment', 'raw_claude', named(messageStart(usage), block, empty, stop, ...messageEnd(usage, 'tool_use'))],
  ] as const)
    test(`${what} becomes "{}" for OpenAI's clients and {} for Anthropic's`, async () => {
      field.raw.answers.set(model, sse([stream]));
      const told = toldIn(await streamed(model));
      assert.deepEqual([told.calls.map((one) => one.function), told.finish], [[{ name: 'look', arguments: '{}' }], ['tool_calls']]);
      field.raw.answers.set(model, sse([stream]));
      const reply = await field.app.post('/v1/messages', {
        model,
        max_tokens: 10,
        messages: user('hi'),
        tools: [{ name: 'look', input_schema: { type: 'object' } }],
      });
      assert.deepEqual(
        (reply.json as { content?: { input?: unknown }[] }).content?.map(({ input }) => input),
        [{}],
      );
    });
});

describe('field report 10: calls under a reason that says otherwise', () => {
  const opening = event(piece({ role: 'assistant', tool_calls: [{ index: 0, ...call('call_1', '{"a":1}') }] }));
  for (const [what, stream] of [
    ['stop', opening + event(piece({}, 'stop')) + DONE],
    ['none', opening + DONE],
  ] as const)
    test(`${what}: the client is shown tool_calls`, async () => {
      field.raw.answers.set('m', sse([stream]));
      const { finish, calls, errors } = toldIn(await streamed('m'));
      assert.deepEqual([finish, calls.length, errors], [['tool_calls'], 1, []]);
    });
  test('tool_calls with an empty list ends the turn', async () => {
    field.raw.answers.set('m', sse([event(piece({ role: 'assistant', content: 'no tool', tool_calls: [] })) + event(piece({}, 'tool_calls')) + DONE]));
    assert.deepEqual(toldIn(await streamed('m')).finish, ['stop']);
    field.fake.on('strict', (reply) => reply.completion({ content: 'no tool', tool_calls: [] }, { finish: 'tool_calls' }));
    const { choices } = (await field.app.chat({ model: 'strict', messages: user('x'), tools: TOOLS })).json as unknown as {
      choices: { finish_reason: string; message: object }[];
    };
    assert.equal(choices[0]?.finish_reason, 'stop');
  });
});

test('field report 11: two tool messages in a row go to Anthropic as one user message, results first, ids paired', async () => {
  answer = () => [{ type: 'text', text: 'ok' }];
  const calls = { role: 'assistant', content: null, tool_calls: [call('call_a'), call('call_b')] };
  const results = ['call_a', 'call_b'].map((tool_call_id) => ({ role: 'tool', tool_call_id, content: `of ${tool_call_id}` }));
  for (const rest of [[], user('and now?')]) {
    const reply = await app.chat({ model: 'claude', tools: TOOLS, messages: [...user('hi'), calls, ...results, ...rest] });
    assert.equal(reply.status, 200, reply.text);
    const { messages } = sentToClaude();
    assert.deepEqual(
      messages.map(({ role }) => role),
      ['user', 'assistant', 'user'],
    );
    assert.deepEqual(
      messages[2]?.content.map(({ type, tool_use_id }) => [type, tool_use_id]),
      [
        ...[
          ['tool_result', 'call_a'],
          ['tool_result', 'call_b'],
        ],
        ...rest.map(() => ['text', undefined]),
      ],
    );
  }
});

test('field report 12: no empty text block is ever sent, with tool calls or without', async () => {
  const empties: unknown[] = ['', null, [], [{ type: 'text', text: '' }], '  \n', [{ type: 'text', text: ' ' }]];
  for (const content of empties)
    for (const role of ['user', 'assistant', 'tool', 'system'])
      for (const stream of [false, true]) {
        const calls = role === 'assistant' ? { tool_calls: [call('call_a')] } : {};
        const messages = [
          ...(role === 'system' ? [{ role, content }] : []),
          { role: 'user', content: role === 'user' ? content : 'hi' },
          { role: 'assistant', content: role === 'assistant' ? content : 'well', ...(role === 'tool' ? { tool_calls: [call('call_a')] } : calls) },
          ...(role === 'tool' || role === 'assistant' ? [{ role: 'tool', tool_call_id: 'call_a', content: role === 'tool' ? content : 'done' }] : []),
          { role: 'user', content: 'go on' },
        ];
        const reply = await app.chat({ model: 'claude', tools: TOOLS, stream, messages });
        assert.equal(reply.status, 200, `${role} ${JSON.stringify(content)}: ${reply.text}`);
        assert.doesNotMatch(claude.calls.at(-1)?.raw ?? '', /"text":"\s*"/);
      }
});

test('field report 13: foreign ids are rewritten on the outgoing copy only, the same for call and result, never two into one', async () => {
  const ids = ['functions.search:0', 'functions_search_0', 'functions.search/0', 'toolu_ok'];
  answer = () => [{ type: 'text', text: 'ok' }];
  field.fake.on('strict', (reply, { body }) =>
    reply.completion(body.messages.some(({ role }) => role === 'tool') ? { content: 'back' } : { content: null, tool_calls: ids.map((id) => call(id)) }),
  );
  const ask = (model: string, messages: object[]) => app.chat({ model, session_id: 'moving', tools: TOOLS, messages });
  assert.equal((await ask('gpt', user('search'))).status, 200);
  const results = ids.map((tool_call_id) => ({ role: 'tool', tool_call_id, content: tool_call_id }));
  const moved = await ask('claude', results);
  assert.equal(moved.status, 200, moved.text);
  const [, calls, answered] = sentToClaude().messages;
  const wire = calls?.content.map(({ id }) => String(id)) ?? [];
  assert.equal(new Set(wire).size, ids.length);
  for (const id of wire) assert.match(id, /^[a-zA-Z0-9_-]+$/);
  assert.deepEqual(
    answered?.content.map(({ tool_use_id, content }) => [tool_use_id, content]),
    wire.map((id, at) => [id, ids[at]]),
  );
  assert.equal((await ask('gpt', user('and back'))).status, 200);
  const back = field.fake.calls.at(-1)?.body.messages ?? [];
  assert.deepEqual([back[1]?.tool_calls?.map(({ id }) => id), back.slice(2, 6).map(({ tool_call_id }) => tool_call_id)], [ids, ids]);
});

for (const stream of [false, true])
  test(`field report 14: thinking is kept, first and byte for byte, through a tool loop, and stripped for another provider${stream ? ', streamed' : ''}`, async () => {
    const thinking = { type: 'thinking', thinking: 'Let me é 世界 …\n"so"', signature: `EqQBCgYIARgCKkA/+=${stream}` };
    const redacted = { type: 'redacted_thinking', data: 'EmwKAhgBEgy3va3pzix/LafPsn4a' };
    answer = ({ body }) =>
      body.messages.length > 1 ? [{ type: 'text', text: 'done' }] : [thinking, redacted, { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }];
    const ask = (model: string, messages: object[]) =>
      app.chat({ model, session_id: `thinking-${stream}`, stream, tools: TOOLS, messages, ...(model === 'claude' ? { reasoning_effort: 'low' } : {}) });
    await ask('claude', user('look'));
    const second = await ask('claude', [{ role: 'tool', tool_call_id: 'toolu_1', content: 'found' }]);
    assert.equal(second.status, 200, second.text);
    assert.deepEqual(sentToClaude().messages[1]?.content.slice(0, 2), [thinking, redacted]);
    field.fake.on('strict', (reply) => reply.completion({ content: 'gpt here' }));
    assert.equal((await ask('gpt', user('and you?'))).status, 200);
    assert.doesNotMatch(field.fake.calls.at(-1)?.raw ?? '', /thinking|reasoning|signature|redacted/);
  });

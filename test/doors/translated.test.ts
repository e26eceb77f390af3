import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sizeOfMessage, upperBound } from '../../src/context/message-size.ts';
import { HermesError } from '../../src/contracts/errors.ts';
import door from '../../src/doors/anthropic-messages.ts';
import anthropicProvider from '../../src/providers/anthropic.ts';
import openaiProvider from '../../src/providers/openai.ts';
import { type Reply, type RunningApp, startApp } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { anthropicTarget } from '../providers/anthropic-targets.ts';
import { createFakeAnthropic, type FakeAnthropic } from '../providers/fake-anthropic.ts';
import { makeTarget } from '../upstream/send-kit.ts';

/** Clients of other forms in front of an upstream that speaks OpenAI's, and is as strict. */
let openai: FakeUpstream;
let anthropic: FakeAnthropic;
let app: RunningApp;

before(async () => {
  openai = await createFakeUpstream();
  anthropic = await createFakeAnthropic(() => [{ type: 'text', text: 'ok' }]);
  const gpt = { provider: 'openai', api_base: openai.url, api_key_env: 'UP_KEY' };
  openai.on('full', (reply, { raw }) => {
    const said = raw.includes('#numbers') ? 'However, your messages resulted in 9,001 tokens. Please reduce the length of the messages.' : '';
    reply.error(400, `This model's maximum context length is 8192 tokens. ${said}`, { type: 'invalid_request_error', code: 'context_length_exceeded' });
  });
  const claude = { provider: 'anthropic', model_name: 'claude-sonnet-4-5', api_base: anthropic.url, api_key_env: 'ANT_KEY', max_tokens: 4000 };
  const models = [
    { id: 'gpt', model_name: 'gpt-4o', ...gpt },
    { id: 'claude', ...claude },
    { id: 'small', model_name: 'gpt-4o', ...gpt, context_window: 1000, max_tokens: 100 },
    { id: 'thinker', model_name: 'gpt-5.1', ...gpt },
    { id: 'new_thinker', model_name: 'gpt-5.4', ...gpt },
    { id: 'full', model_name: 'full', ...gpt },
    {
      id: 'gpt_or_claude',
      failover: {
        upstreams: [
          { target: 'gpt', weight: 100 },
          { target: 'claude', weight: 1 },
        ],
      },
    },
  ];
  app = await startApp({ models, default_model: 'gpt' }, { env: { UP_KEY: 'sk-up', ANT_KEY: 'sk-ant' } });
});
after(async () => {
  await app.stop();
  await Promise.all([openai.close(), anthropic.close()]);
});

/** What cannot be told there. */
const dropped = (body: object, target: object = {}): string[] =>
  openaiProvider.toUpstream(door.enter({ messages: HI, ...body }, {}).request, makeTarget(target)).droppedParams;
const HI = [{ role: 'user', content: 'hi' }];
const messages = (body: object): Promise<Reply> => app.post('/v1/messages', { model: 'gpt', max_tokens: 100, messages: HI, ...body });
/** What the upstream got of a request that it has to take. */
async function sent(path: 'messages' | 'responses', body: object): Promise<Record<string, unknown>> {
  const reply = await (path === 'messages' ? messages(body) : app.post('/v1/responses', { model: 'gpt', input: 'hi', store: false, ...body }));
  assert.equal(reply.status, 200, reply.text);
  return openai.calls.at(-1)?.body ?? {};
}

describe('an Anthropic client in front of an OpenAI upstream', () => {
  const user_id = `user_${'a'.repeat(64)}_account__session_${'b'.repeat(36)}`;

  test('has a long user id hashed to what is taken there, the same one each time; a short one stays', async () => {
    const [one, two] = [await sent('messages', { metadata: { user_id } }), await sent('messages', { metadata: { user_id } })];
    assert.match(String(one.user), /^[0-9a-f]{64}$/);
    assert.equal(one.user, two.user);
    assert.equal((await sent('messages', { metadata: { user_id: 'u'.repeat(64) } })).user, 'u'.repeat(64));
  });

  test('has the first four of its stop sequences, and the parameter named', async () => {
    const stop_sequences = ['a', 'b', 'c', 'd', 'e'];
    assert.deepEqual((await sent('messages', { stop_sequences })).stop, ['a', 'b', 'c', 'd']);
    assert.deepEqual([dropped({ stop_sequences }), dropped({ stop_sequences: ['a'] })], [['stop'], []]);
    assert.deepEqual(dropped({ stop_sequences }, { modelName: 'deepseek-chat' }), []);
  });

  test('has its format of the answer, by the newer name and the older one', async () => {
    const format = { type: 'json_schema', schema: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false } };
    const wanted = { type: 'json_schema', json_schema: { name: 'answer', schema: format.schema, strict: true } };
    assert.deepEqual((await sent('messages', { output_config: { format } })).response_format, wanted);
    assert.deepEqual((await sent('messages', { output_format: format })).response_format, wanted);
    const call = anthropicProvider.toUpstream(door.enter({ max_tokens: 9, messages: HI, output_format: format }, {}).request, anthropicTarget());
    const { output_format, output_config } = JSON.parse(String(call.body));
    assert.deepEqual([output_format, output_config, call.droppedParams], [format, undefined, []]);
  });

  test('has its whole user id in front of an Anthropic upstream', async () => {
    assert.equal((await messages({ model: 'claude', metadata: { user_id } })).status, 200);
    assert.deepEqual(anthropic.calls.at(-1)?.body.metadata, { user_id });
  });
});

describe('where no tool goes out, nothing speaks of tools', () => {
  const SEARCH = { type: 'web_search_20250305', name: 'web_search', max_uses: 2 };
  const READ = { name: 'read', input_schema: { type: 'object' } };
  for (const [name, path, body] of [
    ['a native tool that stays behind, and is chosen', 'messages', { tools: [SEARCH], tool_choice: { type: 'tool', name: 'web_search' } }],
    ['a native tool that stays behind, one at a time', 'messages', { tools: [SEARCH], tool_choice: { type: 'auto', disable_parallel_tool_use: true } }],
    ['a native tool that stays behind, and any must be used', 'messages', { tools: [SEARCH], tool_choice: { type: 'any' } }],
    ['an empty list', 'messages', { tools: [], tool_choice: { type: 'auto' } }],
    ['none', 'messages', { tool_choice: { type: 'none' } }],
    ['parallel calls without tools', 'responses', { parallel_tool_calls: true }],
    ['parallel calls and an empty list', 'responses', { parallel_tool_calls: false, tools: [], tool_choice: 'auto' }],
  ] as const)
    test(`${path}: ${name}`, async () => {
      const out = await sent(path, body);
      assert.deepEqual([out.tools, out.tool_choice, out.parallel_tool_calls], [undefined, undefined, undefined]);
    });

  test("an OpenAI client's names of hermes' tools, none of which is to be had", async () => {
    const reply = await app.chat({ model: 'gpt', messages: HI, tools: ['no.such'], tool_choice: 'auto', parallel_tool_calls: true });
    assert.equal(reply.status, 200, reply.text);
  });

  test('beside others a native tool that is chosen is no choice any more; the rest of it stays', async () => {
    const chosen = { tools: [SEARCH, READ], tool_choice: { type: 'tool', name: 'web_search', disable_parallel_tool_use: true } };
    const body = await sent('messages', chosen);
    assert.deepEqual([body.tool_choice, body.parallel_tool_calls, Array.isArray(body.tools) && body.tools.length], [undefined, false, 1]);
    const other = await sent('messages', { tools: [SEARCH, READ], tool_choice: { type: 'tool', name: 'read' } });
    assert.deepEqual(other.tool_choice, { type: 'function', function: { name: 'read' } });
  });

  test('what stays behind is named', () => {
    assert.deepEqual(dropped({ tools: [SEARCH], tool_choice: { type: 'any' } }), ['tools.web_search_20250305', 'tool_choice']);
    assert.deepEqual(dropped({ tools: [SEARCH, READ], tool_choice: { type: 'auto' } }), ['tools.web_search_20250305']);
  });
});

describe('how much the model is to think', () => {
  const TOOLS = [{ name: 'read', input_schema: { type: 'object' } }];
  const enabled = (budget_tokens: number) => ({ thinking: { type: 'enabled', budget_tokens } });
  const effort = (value: string) => ({ thinking: { type: 'adaptive' }, output_config: { effort: value } });

  test('is told by an effort to models that take one', async () => {
    const told = async (body: object): Promise<unknown> => (await sent('messages', { model: 'thinker', ...body })).reasoning_effort;
    for (const [body, wanted] of [
      [enabled(1024), 'low'],
      [enabled(8192), 'medium'],
      [enabled(31_999), 'high'],
      [effort('low'), 'low'],
      [{ output_config: { effort: 'max' } }, 'high'],
      [{ thinking: { type: 'adaptive' } }, undefined],
      [{ thinking: { type: 'disabled' }, output_config: { effort: 'low' } }, undefined],
      [{ ...enabled(8192), tools: TOOLS }, 'medium'],
    ] as const)
      assert.equal(await told(body), wanted, JSON.stringify(body));
    assert.equal(await told({ model: 'gpt', ...effort('high') }), undefined);
    assert.equal(await told({ model: 'new_thinker', ...effort('high') }), 'high');
    assert.equal(await told({ model: 'new_thinker', tools: TOOLS, ...effort('high') }), undefined);
  });

  test('is named where it cannot be told', () => {
    const named = (modelName: string, body: object): string[] => dropped(body, { modelName });
    assert.deepEqual(named('gpt-4o', effort('high')), ['thinking', 'output_config.effort']);
    assert.deepEqual(named('gpt-4o', { thinking: { type: 'disabled' } }), []);
    assert.deepEqual(named('gpt-5.4', { tools: TOOLS, ...enabled(2000) }), ['thinking']);
    assert.deepEqual(named('gpt-5', { thinking: { type: 'adaptive' } }), []);
    assert.deepEqual(named('gpt-5', { thinking: { type: 'disabled' } }), ['thinking']);
    assert.deepEqual(named('gpt-5', enabled(2000)), []);
  });
});

describe("what a user says in Anthropic's own blocks", () => {
  const CITED = { citations: { enabled: true } };
  const FOUND = {
    type: 'search_result',
    source: 'https://docs.example/refunds',
    title: 'Refunds',
    content: [
      { type: 'text', text: 'Within 30 days.' },
      { type: 'text', text: 'Money back.' },
    ],
    ...CITED,
  };
  const IMAGE = { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } };
  const PAGES = { type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'page one' }, IMAGE] }, title: 'Manual', ...CITED };
  const NOTES = { type: 'document', source: { type: 'text', media_type: 'text/plain', data: '你好' }, context: 'of a call' };
  const CALL = { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }] };
  const answered = (...content: object[]) => [...HI, CALL, { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content }] }];
  const TOOLS = [{ name: 'look', input_schema: { type: 'object' } }];
  const FOUND_TEXT = { type: 'text', text: 'Refunds\nhttps://docs.example/refunds\nWithin 30 days.\nMoney back.' };

  test('arrives as text, title and source first, and as images', async () => {
    const { messages: got } = await sent('messages', { messages: [{ role: 'user', content: [FOUND, PAGES, NOTES] }] });
    assert.deepEqual(got, [
      {
        role: 'user',
        content: [
          FOUND_TEXT,
          { type: 'text', text: 'Manual\npage one' },
          { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
          { type: 'text', text: 'of a call\n你好' },
        ],
      },
    ]);
    const plain = await sent('messages', { messages: [{ role: 'user', content: [{ type: 'document', source: { type: 'content', content: 'all of it' } }] }] });
    assert.deepEqual(plain.messages, [{ role: 'user', content: [{ type: 'text', text: 'all of it' }] }]);
  });

  test('arrives as text in the result of a tool, its images behind it', async () => {
    const { messages: got } = await sent('messages', { tools: TOOLS, messages: answered(FOUND, PAGES, { type: 'tool_reference', tool_name: 'look' }) });
    assert.deepEqual(Array.isArray(got) && got.slice(2), [
      { role: 'tool', tool_call_id: 'toolu_1', content: [FOUND_TEXT, { type: 'text', text: 'Manual\npage one' }, { type: 'text', text: 'look' }] },
      { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }] },
    ]);
  });

  test('is refused by its place where it cannot be told, and reaches the model behind that can read it', async () => {
    const page = { type: 'document', source: { type: 'url', url: 'https://example.com/a.pdf' } };
    const asked = [{ role: 'user', content: [{ type: 'text', text: 'read' }, page] }];
    for (const [place, body] of [
      ['messages.0.content.1', { system: 'Be kind.', messages: asked }],
      ['messages.0.content.0', { messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'file', file_id: 'file_1' } }] }] }],
      ['messages.2.content.0.content.1', { tools: TOOLS, messages: answered(FOUND, page) }],
    ] as const) {
      const calls = openai.calls.length;
      const reply = await messages(body);
      assert.deepEqual([reply.status, reply.json.error?.type, openai.calls.length], [400, 'invalid_request_error', calls], reply.text);
      assert.ok(reply.json.error?.message.includes(`'${place}'`) && reply.json.error.message.includes('Send the content itself'), reply.text);
    }
    assert.equal((await messages({ model: 'gpt_or_claude', messages: asked })).status, 200);
    assert.deepEqual(anthropic.calls.at(-1)?.body.messages, asked);
  });

  test('arrives in front of an Anthropic upstream as it was', async () => {
    const asked = [{ role: 'user', content: [FOUND, PAGES, NOTES, { type: 'text', text: 'well?' }] }];
    const call = anthropicProvider.toUpstream(door.enter(structuredClone({ max_tokens: 9, messages: asked }), {}).request, anthropicTarget());
    assert.deepEqual(JSON.parse(String(call.body)).messages, asked);
  });

  test('is counted as the text that it is', () => {
    const long = { ...FOUND, content: [{ type: 'text', text: 'word '.repeat(20_000) }] };
    const [message] = door.enter({ messages: [{ role: 'user', content: [long] }] }, {}).request.messages;
    assert.ok(message && upperBound(sizeOfMessage(message)) > 100_000);
  });
});

describe("an exceeded window is told in Anthropic's own words, which its clients look for", () => {
  const told = async (body: object): Promise<string> => {
    const { status, json } = await messages(body);
    assert.deepEqual([status, json.error?.type], [400, 'invalid_request_error']);
    return json.error?.message ?? '';
  };

  test('when an upstream says so, with its numbers or without', async () => {
    const asked = [{ role: 'user', content: '#numbers' }];
    assert.match(
      await told({ model: 'full', messages: asked }),
      /^prompt is too long: 9001 tokens > 8192 maximum\. This model's maximum context length is 8192/,
    );
    assert.match(await told({ model: 'full' }), /^prompt is too long: This model's maximum context length is 8192/);
  });

  test('when hermes says so, with its numbers', async () => {
    const asked = [{ role: 'user', content: 'word '.repeat(3000) }];
    const said = await told({ model: 'small', session_id: 's-long', messages: asked });
    const [, tokens, maximum] = /^prompt is too long: (\d+) tokens > (\d+) maximum\. The system prompt/.exec(said) ?? [];
    assert.ok(Number(tokens) > 3000 && Number(maximum) < 1000, said);
  });

  test('once', () => {
    const words = 'prompt is too long: 210000 tokens > 200000 maximum';
    const body = door.toError(new HermesError('context_length_exceeded', words), {});
    assert.deepEqual(Reflect.get(Object(body), 'error'), { type: 'invalid_request_error', message: words });
  });
});

describe('an OpenAI client in front of an OpenAI upstream', () => {
  test('is told by the upstream itself what that refuses: its request is its own', async () => {
    const reply = await app.chat({ model: 'gpt', messages: HI, user: 'u'.repeat(65) });
    assert.deepEqual([reply.status, reply.json.error?.param], [400, 'user']);
    assert.equal(openai.calls.at(-1)?.body.user, 'u'.repeat(65));
  });
});

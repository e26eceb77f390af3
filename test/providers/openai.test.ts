import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HermesError } from '../../src/contracts/errors.ts';
import type { UpstreamTarget } from '../../src/contracts/exchange.ts';
import openai from '../../src/providers/openai.ts';
import type { ChatMessage, ChatRequest } from '../../src/wire/chat.ts';
import { parseJson } from '../../src/wire/json.ts';
import { toMaker, withMaker, withStoredMaker } from '../../src/wire/maker.ts';
import { makeTarget } from '../upstream/send-kit.ts';

const user: ChatMessage = { role: 'user', content: 'hi' };
function sent(request: Partial<ChatRequest>, target: Partial<UpstreamTarget> = {}): Record<string, unknown> & ChatRequest {
  const call = openai.toUpstream({ model: 'auto', messages: [user], ...request }, makeTarget(target));
  return JSON.parse(String(call.body));
}
const tool = (name: string) => ({ type: 'function', function: { name, parameters: { type: 'object' } } });

test('a plain body goes on as it is, in its order, with only the model changed', () => {
  const body =
    '{"temperature":0.2,"model":"auto","messages":[{"role":"user","content":"hi","x":1}],"order_no":9007199254740993,"nested":{"b":1,"a":12345678901234567890}}';
  const call = openai.toUpstream(parseJson(body) as ChatRequest, makeTarget({ modelName: 'gpt-4o' }));
  assert.equal(call.body, body.replace('"auto"', '"gpt-4o"'));
  assert.equal(call.context, undefined);
  assert.equal(openai.toUpstream({ messages: [user] }, makeTarget()).body, '{"model":"m","messages":[{"role":"user","content":"hi"}]}');
});

test('the bound of the answer: default, ceiling, one field, the one that the model takes', () => {
  const bounds = (request: Partial<ChatRequest>, target: Partial<UpstreamTarget>) => {
    const { max_tokens, max_completion_tokens } = sent(request, target);
    return [max_tokens, max_completion_tokens];
  };
  const max = { maxTokens: 512 };
  assert.deepEqual(bounds({}, max), [512, undefined]);
  assert.deepEqual(bounds({ max_tokens: 100 }, max), [100, undefined]);
  assert.deepEqual(bounds({ max_tokens: 9999 }, max), [512, undefined]);
  assert.deepEqual(bounds({ max_completion_tokens: 9999 }, max), [undefined, 512]);
  assert.deepEqual(bounds({ max_tokens: 7, max_completion_tokens: 8 }, { modelName: 'gpt-4o' }), [undefined, 8]);
  assert.deepEqual(bounds({ max_tokens: 7 }, { modelName: 'gpt-5.1' }), [undefined, 7]);
  assert.deepEqual(bounds({}, { ...max, modelName: 'o3-mini' }), [undefined, 512]);
  assert.deepEqual(bounds({ max_completion_tokens: 7 }, { modelName: 'deepseek-chat' }), [7, undefined]);
  assert.deepEqual(bounds({ max_tokens: 7 }, { quirks: { max_tokens_field: 'max_completion_tokens' } }), [undefined, 7]);
  assert.deepEqual(bounds({ max_tokens: null }, {}), [undefined, undefined]);
});

test('usage is asked for in every stream, unless the server refuses that; never outside of one', () => {
  assert.deepEqual(sent({ stream: true }).stream_options, { include_usage: true });
  assert.deepEqual(sent({ stream: true, stream_options: { include_usage: false, include_obfuscation: false } }).stream_options, {
    include_usage: true,
    include_obfuscation: false,
  });
  assert.equal(sent({ stream: true }, { quirks: { stream_options: false } }).stream_options, undefined);
  assert.equal('stream_options' in sent({ stream_options: { include_usage: true } }), false);
});

test('names of tools are made legal everywhere, and nothing else is touched when all of them are', () => {
  const messages: ChatMessage[] = [
    user,
    { role: 'assistant', content: null, tool_calls: [{ id: 'c', type: 'function', function: { name: 'a.b', arguments: '{"n":9007199254740993}' } }] },
    { role: 'tool', tool_call_id: 'c', name: 'a.b', content: 'x' },
  ];
  const body = sent({ messages, tools: [tool('a.b'), tool('a__b'), tool('x'.repeat(80))], tool_choice: { type: 'function', function: { name: 'a.b' } } });
  const names = (body.tools ?? []).map((one) => one.function.name);
  assert.equal(new Set(names).size, 3);
  for (const name of names) assert.match(name, /^[a-zA-Z0-9_-]{1,64}$/);
  assert.equal(names[1], 'a__b');
  assert.deepEqual(
    [body.messages[1]?.tool_calls?.[0]?.function.name, body.messages[2]?.name, (body.tool_choice as { function: { name: string } }).function.name],
    Array(3).fill(names[0]),
  );
  assert.equal(openai.toUpstream({ messages, tools: [tool('fine')] }, makeTarget()).context !== undefined, true);
  assert.equal(openai.toUpstream({ messages: [user], tools: [tool('fine')] }, makeTarget()).context, undefined);
});

test('what the API refuses is mended on the copy alone', () => {
  const messages: ChatMessage[] = [
    { role: 'system', content: '' },
    {
      role: 'user',
      content: [
        { type: 'text', text: '' },
        { type: 'text', text: 'hi' },
      ],
    },
    { role: 'assistant', content: [], tool_calls: [] },
    { role: 'user', content: [] },
    { role: 'assistant', content: null },
    { role: 'assistant', content: null, tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }] },
    { role: 'tool', tool_call_id: 'c', content: null },
  ];
  const before = JSON.stringify(messages);
  const body = sent({ messages, tools: [], tool_choice: 'auto' });
  assert.deepEqual(
    body.messages.map((message) => message.content),
    ['', [{ type: 'text', text: 'hi' }], '', '', '', null, ''],
  );
  assert.equal('tool_calls' in (body.messages[2] ?? {}), false);
  assert.deepEqual(['tools' in body, 'tool_choice' in body], [false, false]);
  assert.equal(JSON.stringify(messages), before);
});

test('a file that is only an address is refused by name where it would not be fetched', () => {
  const file = { type: 'file', file: { file_url: 'https://example.com/a.pdf' } };
  const messages: ChatMessage[] = [user, { role: 'user', content: [{ type: 'text', text: 'read' }, file] }];
  assert.throws(
    () => sent({ messages }, { modelName: 'gpt-4o' }),
    (error) =>
      error instanceof HermesError &&
      error.status === 400 &&
      error.param === 'messages[1].content[1].file.file_url' &&
      error.message.includes('example.com/a.pdf'),
  );
  assert.deepEqual(sent({ messages }, { modelName: 'qwen-doc', apiBase: 'https://example.com/v1' }).messages, messages);
});

test('the role developer goes where it is known', () => {
  const role = (target: Partial<UpstreamTarget>) => sent({ messages: [{ role: 'developer', content: 'x' }, user] }, target).messages[0]?.role;
  assert.deepEqual(
    [
      role({ modelName: 'gpt-5' }),
      role({ modelName: 'my-own' }),
      role({ modelName: 'qwen-max' }),
      role({ quirks: { developer_role: false } }),
      role({ modelName: 'qwen', quirks: { developer_role: true } }),
    ],
    ['developer', 'developer', 'system', 'system', 'developer'],
  );
});

test('reasoning goes back to those that take it', () => {
  const assistant = (more: object = {}): ChatMessage => ({ role: 'assistant', content: 'a', reasoning_content: 'because', ...more });
  const kept = (target: Partial<UpstreamTarget>, message = assistant()) =>
    'reasoning_content' in (sent({ messages: [user, message, user] }, target).messages[1] ?? {});
  assert.deepEqual(
    [kept({ modelName: 'deepseek-reasoner' }), kept({ modelName: 'gpt-4o' }), kept({ reasoning: 'strip' }), kept({ modelName: 'gpt-4o', reasoning: 'send' })],
    [true, false, false, true],
  );
  const signed = assistant({ thinking_blocks: [{ type: 'thinking', thinking: 'because', signature: 's' }] });
  assert.equal(kept({ modelName: 'deepseek-reasoner' }, signed), false);
  assert.ok(!JSON.stringify(sent({ messages: [user, signed, user] })).includes('signature'));
});

test('ids of tool calls: nine characters for Mistral, none endless, paired and never two into one', () => {
  const ids = ['functions.search:0', 'functions_search_0', 'abcdefghi', 'x'.repeat(90)];
  const messages: ChatMessage[] = [
    user,
    { role: 'assistant', content: null, tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } })) },
    ...ids.map((id): ChatMessage => ({ role: 'tool', tool_call_id: id, content: id })),
  ];
  const pairs = (target: Partial<UpstreamTarget>) => {
    const body = sent({ messages }, target);
    const out = (body.messages[1]?.tool_calls ?? []).map((call) => call.id);
    assert.deepEqual(
      body.messages.slice(2).map((message) => message.tool_call_id),
      out,
    );
    assert.equal(new Set(out).size, ids.length);
    return out;
  };
  for (const id of pairs({ quirks: { tool_call_ids: 'nine' } })) assert.match(id, /^[a-zA-Z0-9]{9}$/);
  assert.equal(pairs({ quirks: { tool_call_ids: 'nine' } })[2], 'abcdefghi');
  assert.deepEqual(pairs({}).slice(0, 3), ids.slice(0, 3));
  assert.ok((pairs({})[3] ?? '').length <= 40);
});

test("ids of tool calls: vLLM's are shortened for others, and go back to the vendor that made them as they were", () => {
  const id = `chatcmpl-tool-${'0123456789abcdef'.repeat(2)}`;
  const call: ChatMessage = { role: 'assistant', content: null, tool_calls: [{ id, type: 'function', function: { name: 'f', arguments: '{}' } }] };
  const result: ChatMessage = { role: 'tool', tool_call_id: id, content: 'x' };
  const target = { modelName: 'my-own', apiBase: 'http://gpu-1:8000/v1' };
  const ids = (to: Partial<UpstreamTarget>, assistant = call): unknown[] => {
    const { messages } = sent({ messages: [user, assistant, result] }, to);
    return [messages[1]?.tool_calls?.[0]?.id, messages[2]?.tool_call_id];
  };
  const [short, answered] = ids({ modelName: 'gpt-4o' });
  assert.match(String(short), /^call_[0-9a-f]{24}$/);
  assert.equal(answered, short);
  assert.deepEqual(ids(target), [short, short]);
  assert.deepEqual(ids({ modelName: 'Qwen/Qwen3-32B' }), [id, id]);
  const stored = withMaker(JSON.parse(JSON.stringify(withStoredMaker(call, toMaker({ provider: 'openai', apiBase: target.apiBase })))));
  assert.deepEqual(ids(target, stored), [id, id]);
  assert.deepEqual(ids({ modelName: 'gpt-4o' }, stored), [short, short]);
});

test('addresses and headers', () => {
  const url = (target: Partial<UpstreamTarget>) => openai.toUpstream({ messages: [user] }, makeTarget(target)).url;
  assert.equal(url({ apiBase: 'https://a.example/v1/' }), 'https://a.example/v1/chat/completions');
  assert.equal(url({ apiBase: 'https://a.example/v1/chat/completions', query: { k: 'a b' } }), 'https://a.example/v1/chat/completions?k=a+b');
  const azure = {
    apiBase: 'https://x.openai.azure.com',
    modelName: 'gpt 4',
    apiVersion: '2024-10-21',
    quirks: { path: '/openai/deployments/{model}/chat/completions' },
  };
  assert.equal(url(azure), 'https://x.openai.azure.com/openai/deployments/gpt%204/chat/completions?api-version=2024-10-21');
  const { headers } = openai.toUpstream({ messages: [user] }, makeTarget(azure));
  assert.equal(headers['api-key'], 'sk-upstream-secret');
  assert.equal(openai.toUpstream({ messages: [user] }, makeTarget({ apiKey: undefined })).headers.authorization, undefined);
  assert.equal(openai.toUpstream({ messages: [user] }, makeTarget({ headers: { Authorization: 'Basic x' } })).headers.authorization, 'Basic x');
});

test('extra_body is added and wins', () => {
  assert.deepEqual(
    [sent({ temperature: 1 }, { extraBody: { temperature: 0, thinking: { type: 'disabled' } } })].map((body) => [body.temperature, body.thinking])[0],
    [0, { type: 'disabled' }],
  );
});

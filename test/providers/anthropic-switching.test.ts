import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import anthropic from '../../src/providers/anthropic.ts';
import openai from '../../src/providers/openai.ts';
import type { ChatMessage, ChatRequest } from '../../src/wire/chat.ts';
import { complaint } from './anthropic-request-validator.ts';
import { anthropicTarget } from './anthropic-targets.ts';

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const gpt = anthropicTarget({ id: 'gpt', provider: 'openai', modelName: 'gpt-4o', apiBase: 'https://api.openai.com/v1' });
const deepseek = anthropicTarget({ id: 'ds', provider: 'openai', modelName: 'deepseek-reasoner', apiBase: 'https://api.deepseek.com/v1' });
const tools = [{ type: 'function', function: { name: 'order.query', parameters: { type: 'object', properties: { id: { type: 'integer' } } } } }];

/** A conversation with an image, parallel tools under foreign ids, and signed thinking, as three makers left it. */
const history: ChatMessage[] = [
  { role: 'system', content: 'Be kind.' },
  {
    role: 'user',
    content: [
      { type: 'text', text: '看图' },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } },
    ],
  },
  {
    role: 'assistant',
    content: null,
    tool_calls: [
      { id: 'functions.order:0', type: 'function', function: { name: 'order.query', arguments: '{"id":9007199254740993}' } },
      { id: 'functions.order:1', type: 'function', function: { name: 'order.query', arguments: '' } },
    ],
  },
  { role: 'tool', tool_call_id: 'functions.order:1', content: '' },
  { role: 'tool', tool_call_id: 'functions.order:0', content: '{"state":"shipped"}' },
];
/** What Claude says next, as the provider hands it on. */
const claude = anthropic.fromUpstream(
  Buffer.from(
    JSON.stringify({
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'claude',
      content: [
        { type: 'thinking', thinking: '想', signature: 'sig+/=' },
        { type: 'redacted_thinking', data: 'Ab+/=' },
        { type: 'text', text: 'one more' },
        { type: 'tool_use', id: 'toolu_1', name: 'order__query', input: { id: 7 } },
      ],
      stop_reason: 'tool_use',
      usage: { input_tokens: 1, output_tokens: 1 },
    }),
  ),
  anthropic.toUpstream({ messages: history, tools }, anthropicTarget()),
).choices[0]?.message;
assert.ok(claude);
const after: ChatMessage[] = [...history, claude, { role: 'tool', tool_call_id: 'toolu_1', content: 'ok' }];

describe('a conversation that changes makers', () => {
  test('OpenAI to Anthropic: foreign ids are legal and paired, digits are kept', () => {
    const body = String(anthropic.toUpstream({ messages: history, tools }, anthropicTarget()).body);
    assert.equal(complaint(body), undefined);
    assert.ok(body.includes('9007199254740993'));
  });

  test('goes on at Anthropic with its thinking first and byte for byte', () => {
    const body = String(anthropic.toUpstream({ messages: after, tools, reasoning_effort: 'low' }, anthropicTarget()).body);
    assert.equal(complaint(body), undefined);
    const { messages, thinking } = JSON.parse(body);
    assert.deepEqual(messages.at(-2).content.slice(0, 2), [
      { type: 'thinking', thinking: '想', signature: 'sig+/=' },
      { type: 'redacted_thinking', data: 'Ab+/=' },
    ]);
    assert.equal(thinking.type, 'enabled');
  });

  for (const target of [gpt, deepseek])
    test(`Anthropic to ${target.modelName}: nothing of Anthropic's own goes along`, () => {
      const body = String(openai.toUpstream({ messages: after, tools }, target).body);
      for (const word of ['thinking_blocks', 'sig+/=', 'redacted', '"anthropic"']) assert.ok(!body.includes(word), word);
      const sent: ChatRequest = JSON.parse(body);
      assert.deepEqual(
        sent.messages.map(({ role }) => role),
        ['system', 'user', 'assistant', 'tool', 'tool', 'assistant', 'tool'],
      );
      assert.equal(sent.messages[5]?.tool_calls?.[0]?.function.name, sent.tools?.[0]?.function.name);
    });

  test('and the history keeps the originals', () => {
    const before = JSON.stringify(after);
    for (const [provider, target] of [
      [anthropic, anthropicTarget()],
      [openai, gpt],
      [openai, deepseek],
    ] as const)
      provider.toUpstream({ messages: after, tools }, target);
    assert.equal(JSON.stringify(after), before);
  });
});

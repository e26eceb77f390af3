import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { ChatMessage } from '../../src/wire/chat.ts';
import { stringifyJson } from '../../src/wire/json.ts';
import { makerOf } from '../../src/wire/maker.ts';
import { keptOf, keptTokens, recall, writeRecalled } from '../../src/wire/recalled.ts';

const call = (args: string) => ({ id: 'call_1', type: 'function', function: { name: 'find', arguments: args } });
const MESSAGES: ChatMessage[] = [
  { role: 'user', content: 'Where is my order?' },
  { content: 'the other way round', role: 'user' },
  { role: 'assistant', content: null, tool_calls: [call('{"id":1}')] },
  {
    role: 'user',
    content: [
      { type: 'text', text: 'this one' },
      { type: 'image_url', image_url: { url: 'https://a/b.png' } },
    ],
  },
  { role: 'assistant', content: 'So.', refusal: null, annotations: [{ type: 'url' }] },
  { role: 'assistant', content: null, function_call: { name: 'find', arguments: '{}' } },
  { role: 'assistant', content: null, tool_calls: [{ id: 'call_2', type: 'custom', custom: { name: 'sh', input: 'ls' } }] } as unknown as ChatMessage,
  {
    role: 'user',
    content: [
      { type: 'file', file: { file_data: 'JVBERi0=' } },
      { type: 'image_url', image_url: 'https://a/b.png' },
    ],
  } as unknown as ChatMessage,
  { role: 'assistant', content: 'Hm.', reasoning_content: 'I think', reasoning_by: 'openai-1' },
];
const kept = (message: ChatMessage, tokens = 7) => ({ message: structuredClone(message), tokens });

describe('recalled messages', () => {
  it('are known, and written as they are, as long as they say what was kept', () => {
    for (const message of MESSAGES) {
      const original = kept(message);
      const copy = recall(original);
      assert.equal(keptOf(copy), original);
      assert.equal(keptTokens(copy), 7);
      const { reasoning_by: _maker, ...wire } = message;
      for (let time = 0; time < 2; time++) assert.equal(writeRecalled(copy), stringifyJson(wire));
      assert.equal(writeRecalled(recall(original)), stringifyJson(wire), 'the next turn');
      assert.deepEqual(original.message, message, 'what is kept stays as it is');
    }
    assert.equal(makerOf(recall(kept(MESSAGES.at(-1) as ChatMessage))), 'openai-1');
  });

  it('are written anew where anything in them was changed in place', () => {
    const changes: ((copy: ChatMessage) => unknown)[] = [
      (copy) => Object.assign(copy, { content: 'another text' }),
      (copy) => Object.assign(copy, { role: 'system' }),
      (copy) => Object.assign(copy, { name: 'ann' }),
      (copy) => Reflect.deleteProperty(copy, 'content'),
      (copy) => Object.assign(copy, { tool_calls: [call('{"id":2}')] }),
      (copy) => {
        if (copy.tool_calls?.[0]?.function) copy.tool_calls[0].function.arguments = '{"id":3}';
        else if (copy.tool_calls) copy.tool_calls.pop();
        else if (Array.isArray(copy.content)) copy.content.pop();
        else copy.content = '';
      },
    ];
    for (const message of MESSAGES)
      for (const change of changes) {
        const original = kept(message);
        const known = writeRecalled(recall(original));
        const copy = recall(original);
        change(copy);
        assert.equal(keptOf(copy), undefined, `${change} of ${known}`);
        assert.equal(writeRecalled(copy), stringifyJson(copy));
        assert.equal(writeRecalled({ ...copy, content: 'spread' }), stringifyJson({ ...copy, content: 'spread' }));
        assert.equal(writeRecalled(recall(original)), known, 'what is kept stays as it is');
      }
  });

  it('and so where it was changed however deep, and what is kept stays as it is', () => {
    const changeLast = (value: unknown): boolean => {
      if (typeof value !== 'object' || value === null) return false;
      for (const [key, member] of Object.entries(value).reverse()) {
        if (typeof member === 'string') Object.assign(value, { [key]: `${member} changed` });
        else if (!changeLast(member)) continue;
        return true;
      }
      return false;
    };
    for (const message of MESSAGES) {
      const original = kept(message);
      writeRecalled(recall(original));
      const copy = recall(original);
      for (const member of [copy.content, copy.tool_calls, copy.function_call]) {
        if (!changeLast(member)) continue;
        assert.equal(keptOf(copy), undefined, JSON.stringify(message));
        assert.equal(writeRecalled(copy), stringifyJson(copy));
      }
      assert.deepEqual(original.message, message);
    }
  });

  it('and where copies are spread over each other, what is kept of neither changes', () => {
    const pairs: ChatMessage[] = [...MESSAGES, { role: 'user', content: 'Where is my order?', name: 'ann' }];
    for (const one of pairs)
      for (const two of pairs) {
        const [first, second] = [kept(one, 1), kept(two, 2)];
        const mixed: ChatMessage = { ...recall(first), ...recall(second) };
        const without: ChatMessage = { ...mixed };
        for (const key of Object.keys(without)) if (!(key in one)) Reflect.deleteProperty(without, key);
        for (const message of [mixed, without, Object.assign(recall(first), recall(second))]) {
          assert.deepEqual(JSON.parse(writeRecalled(message)), JSON.parse(stringifyJson(message)));
          assert.ok([undefined, 2].includes(keptTokens(message)));
        }
        for (const [original, message] of [
          [first, one],
          [second, two],
        ] as const) {
          const { reasoning_by: _maker, ...wire } = message;
          assert.deepEqual(JSON.parse(writeRecalled(recall(original))), wire);
        }
      }
  });

  it('whatever is sent is what a message says', () => {
    const message = fc.record(
      { role: fc.constantFrom('user', 'assistant'), content: fc.oneof(fc.string(), fc.constant(null)), name: fc.string(), refusal: fc.constant(null) },
      { requiredKeys: ['role', 'content'] },
    ) as fc.Arbitrary<ChatMessage>;
    fc.assert(
      fc.property(message, message, fc.boolean(), (first, second, whole) => {
        const original = kept(first);
        writeRecalled(recall(original));
        const copy = recall(original);
        if (whole) for (const key of Object.keys(copy)) Reflect.deleteProperty(copy, key);
        Object.assign(copy, second);
        assert.equal(writeRecalled(copy), stringifyJson({ ...copy }));
      }),
    );
  });

  it('what is no recalled message is written as it is', () => {
    for (const value of [null, 1, 'a', [], {}, { role: 'user', content: 'x' }]) assert.equal(writeRecalled(value), stringifyJson(value));
  });
});

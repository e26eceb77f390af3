import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import OpenAI from 'openai';
import { events, KEY, user } from '../app-kit.ts';
import { bare, DONE, event, type Field, openField, piece, sse } from './field-kit.ts';
import { type Accumulated, accumulateStream } from './python-accumulator.ts';

let field: Field;
before(async () => {
  field = await openField({ openai: ['m'], anthropic: ['claude'] });
});
after(() => field.close());

const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
const call = (index: number, fields: object): object => ({ tool_calls: [{ index, ...fields }] });
const whole = (index: number, args: string): object => call(index, { id: `call_${index}`, type: 'function', function: { name: 'look', arguments: args } });
const stream = (...chunks: object[]): string => chunks.map(event).join('') + DONE;
/** As servers of this family have been seen to stream. */
const OPENAI: Record<string, string> = {
  plain: stream(piece({ role: 'assistant', content: '' }), piece({ content: 'Hi' }), piece({ content: ' you' }), piece({}, 'stop'), bare({ usage })),
  'the role on every chunk': stream(...['Hi', ' you', '!'].map((content) => piece({ role: 'assistant', content })), piece({}, 'stop'), bare({ usage })),
  'usage on every chunk': stream(
    piece({ role: 'assistant', content: 'Hi' }, null, { usage }),
    piece({ content: ' you' }, null, { usage }),
    piece({}, 'stop', { usage }),
  ),
  'usage on the finish chunk': stream(piece({ role: 'assistant', content: 'Hi' }), piece({}, 'stop', { usage })),
  'no finish reason': stream(piece({ role: 'assistant', content: 'Hi' })),
  'calls in fragments': stream(
    piece({ role: 'assistant', content: null, ...whole(0, '') }),
    piece(call(0, { function: { arguments: '{"a":' } })),
    piece(call(0, { function: { arguments: '1}' } })),
    piece(whole(1, '{}')),
    piece({}, 'tool_calls'),
  ),
  'id, type and name on every fragment': stream(piece({ role: 'assistant', ...whole(0, '{"a":') }), piece(whole(0, '1}')), piece({}, 'tool_calls')),
  'calls counted from 1': stream(piece({ role: 'assistant', ...whole(1, '{}') }), piece(whole(2, '{}')), piece({}, 'tool_calls')),
  'a call without arguments': stream(piece({ role: 'assistant', ...whole(0, '') }), piece({}, 'tool_calls')),
  'calls under stop': stream(piece({ role: 'assistant', ...whole(0, '{"a":1}') }), piece({}, 'stop')),
  'reasoning, then text': stream(
    piece({ role: 'assistant', reasoning_content: 'hm' }),
    piece({ reasoning_content: ' so' }),
    piece({ content: 'Hi' }),
    piece({}, 'stop'),
  ),
};
const FOLDER = new URL('../fixtures/anthropic/streams/', import.meta.url);
const ANTHROPIC = Object.fromEntries(
  readdirSync(FOLDER).map((name) => [name.replace('.json', ''), (JSON.parse(readFileSync(new URL(name, FOLDER), 'utf8')) as { stream: string }).stream]),
);

const ask = (model: string): OpenAI.ChatCompletionCreateParamsNonStreaming => ({ model, messages: [{ role: 'user', content: 'hi' }] });

async function both(model: string, bytes: string): Promise<{ python: Accumulated; node: OpenAI.ChatCompletion }> {
  field.raw.answers.set(model, sse([bytes]));
  const reply = await field.app.chat({ ...ask(model), messages: user('hi'), stream: true, stream_options: { include_usage: true } });
  const chunks = events(reply);
  assert.equal(chunks.pop(), '[DONE]', reply.text);
  const client = new OpenAI({ apiKey: KEY, baseURL: `${field.app.base}/v1`, maxRetries: 0 });
  return {
    python: accumulateStream(chunks),
    node: await client.chat.completions.stream({ ...ask(model), stream: true, stream_options: { include_usage: true } }).finalChatCompletion(),
  };
}

for (const [model, fixtures] of [
  ['m', OPENAI],
  ['claude', ANTHROPIC],
] as const)
  describe(`${model === 'm' ? 'streams of the OpenAI family' : "Anthropic's streams"} through the accumulators of both SDKs`, () => {
    for (const [name, bytes] of Object.entries(fixtures))
      test(name, async () => {
        const { python, node } = await both(model, bytes);
        const { message, finish_reason } = node.choices[0] ?? {};
        assert.deepEqual([python.role, python.finish], ['assistant', finish_reason]);
        assert.deepEqual(python.content ?? '', message?.content ?? '');
        const calls = (message?.tool_calls ?? []).flatMap((one) =>
          one.type === 'function' ? [{ id: one.id, name: one.function.name, arguments: one.function.arguments }] : [],
        );
        assert.deepEqual(python.calls, calls);
        assert.equal(python.usage !== undefined, bytes.includes('_tokens'));
      });
  });

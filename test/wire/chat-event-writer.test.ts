import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { makeChunk, toChatEvent, toChunk } from '../../src/wire/batch.ts';
import type { ChatChunk } from '../../src/wire/chat.ts';
import { ChatEventWriter } from '../../src/wire/chat-event-writer.ts';

const text = fc.string({ unit: 'grapheme' });
const delta = fc.oneof(
  fc.record({ content: text }),
  fc.record({ content: text, role: fc.constant('assistant' as const) }),
  fc.record({ reasoning_content: text }),
  fc.constant({}),
);
const chunk: fc.Arbitrary<ChatChunk> = fc
  .record({
    id: fc.constantFrom('a', 'b"'),
    created: fc.constantFrom(0, 1),
    model: fc.constantFrom('m', '世'),
    more: fc.constantFrom({}, { usage: null }, { degraded: true }),
    choices: fc.array(fc.record({ index: fc.constantFrom(0, 1), delta, logprobs: fc.constantFrom(null, {}), finish_reason: fc.constantFrom(null, 'stop') }), {
      maxLength: 2,
    }),
  })
  .map(({ more, choices, ...head }) => ({ ...head, object: 'chat.completion.chunk', choices, ...more }));

test('chunks written together say what each says alone', () => {
  fc.assert(
    fc.property(fc.array(chunk, { maxLength: 6 }), (chunks) => {
      const said = Buffer.from(new ChatEventWriter().write(chunks.map(makeChunk))).toString('utf8');
      const events = said.split('\n\n').slice(0, -1);
      assert.deepEqual(
        events.map((event) => JSON.parse(event.slice('data: '.length))),
        JSON.parse(JSON.stringify(chunks)),
      );
    }),
  );
});

test('what came in the same form goes out as it came, between what was made', () => {
  const raw = Buffer.from('data:  {"id" : "x"}\n\n');
  const made: ChatChunk = {
    id: 'a',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta: { content: 'é' }, logprobs: null, finish_reason: null }],
  };
  const written = new ChatEventWriter().write([makeChunk(made), toChunk(raw, 'openai-chat', made), makeChunk(made)]);
  assert.deepEqual(Buffer.from(written), Buffer.concat([toChatEvent(makeChunk(made)), raw, toChatEvent(makeChunk(made))]));
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ToolTurn } from '../../src/tools/turn.ts';
import { runWholeRounds } from '../../src/tools/whole-rounds.ts';
import { batchOf, makeChunk } from '../../src/wire/batch.ts';
import type { ChatChunk } from '../../src/wire/chat.ts';
import { CompletionBuilder, collect } from '../../src/wire/collect.ts';
import { replay } from '../../src/wire/streams.ts';

const chunk: ChatChunk = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: { content: 'x' } }] };
const long = () => replay(Array.from({ length: 100 }, () => batchOf([makeChunk(chunk)])));

test('a stream is put together up to a bound, also one that was made here', async () => {
  assert.equal((await collect(long())).choices[0]?.message.content?.length, 100);
  await assert.rejects(collect(long(), 10_000), { code: 'overloaded' });
});
test('a streamed round among whole ones is bounded, too', async () => {
  const turn: Pick<ToolTurn, 'facts'> = { facts: [] };
  const ask = { model: () => assert.fail('one round'), cancel: () => undefined };
  await assert.rejects(runWholeRounds(turn as ToolTurn, { facts: {}, stream: long() } as never, ask, 10_000), { code: 'overloaded' });
});

test("a call of a client's custom tool is put together as one", () => {
  const builder = new CompletionBuilder();
  const piece = (call: object): void => builder.add({ ...chunk, choices: [{ index: 0, delta: { tool_calls: [{ index: 0, ...call }] } }] });
  piece({ id: 'call_1', type: 'custom', custom: { name: 'patch', input: '' } });
  for (const input of ['*** Be', 'gin']) piece({ custom: { input } });
  assert.deepEqual(builder.build().choices[0]?.message.tool_calls, [{ id: 'call_1', type: 'custom', custom: { name: 'patch', input: '*** Begin' } }]);
});

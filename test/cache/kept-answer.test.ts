import assert from 'node:assert/strict';
import { it } from 'node:test';
import { KeptAnswer } from '../../src/cache/kept-answer.ts';

const HEAD = { at: 1, model: 'm', upstream: 'u', usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 }, finishReason: 'stop' };
const text = (head: object): string => `${JSON.stringify(head)}\n{"id":"c"}`;

it('a kept answer is read as it was written; what is none is not given to anybody', () => {
  const kept = KeptAnswer.fromText(text(HEAD));
  assert.equal(kept?.toText(), text(HEAD));
  assert.equal(kept?.facts.upstream, 'u');
  for (const broken of [{ ...HEAD, at: '1' }, { ...HEAD, usage: 7 }, { ...HEAD, toolCalls: 'many' }, { ...HEAD, toolCalls: [1] }, []])
    assert.equal(KeptAnswer.fromText(text(broken)), undefined, JSON.stringify(broken));
  assert.equal(KeptAnswer.fromText('no head'), undefined);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import door from '../../src/doors/openai-responses.ts';
import { accumulated, asked, chunk, completion, enter, finish, written } from './responses-kit.ts';

test('repeats settings whole, also those that were given in part', () => {
  const { text, reasoning } = Object(
    door.toBody(completion({ content: 'x' }, 'stop'), {}, asked({ text: { verbosity: 'low' }, reasoning: { effort: 'low' } })),
  );
  assert.deepEqual(
    [text, reasoning],
    [
      { format: { type: 'text' }, verbosity: 'low' },
      { effort: 'low', summary: null },
    ],
  );
});

test('has the probabilities of its tokens, whole and streamed', () => {
  for (const [body, wanted] of [
    [{ include: ['message.output_text.logprobs'] }, { logprobs: true }],
    [{ top_logprobs: 2 }, { logprobs: true, top_logprobs: 2 }],
  ] as const) {
    const { logprobs, top_logprobs } = enter({ input: 'hi', ...body }).request;
    assert.deepEqual({ logprobs, ...(top_logprobs === undefined ? {} : { top_logprobs }) }, wanted);
  }
  const token = (text: string) => ({
    token: text,
    bytes: [...Buffer.from(text)],
    logprob: -0.5,
    top_logprobs: [{ token: text, bytes: null, logprob: -0.5 }],
  });
  const told = (text: string) => ({ ...token(text), top_logprobs: [{ token: text, bytes: [], logprob: -0.5 }] });
  const answer = completion({ content: 'ab' }, 'stop');
  const [choice] = answer.choices;
  const whole = Object(door.toBody({ ...answer, choices: [{ ...Object(choice), logprobs: { content: [token('a'), token('b')], refusal: null } }] }, {}));
  assert.deepEqual(whole.output[0].content[0].logprobs, [told('a'), told('b')]);
  const events = written([
    chunk({ content: 'a' }, { logprobs: { content: [token('a')] } }),
    chunk({ content: 'b' }, { logprobs: { content: [token('b')], refusal: null } }),
    finish('stop'),
  ]);
  const deltas = events.flatMap((event) => (event.type === 'response.output_text.delta' ? [event.logprobs] : []));
  assert.deepEqual(deltas, [[told('a')], [told('b')]]);
  const { before, final } = accumulated(events);
  assert.deepEqual([Object(before.output[0]).content[0].logprobs, final.output], [[told('a'), told('b')], before.output]);
});

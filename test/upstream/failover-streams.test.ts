import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HermesError } from '../../src/contracts/errors.ts';
import type { Answer } from '../../src/contracts/exchange.ts';
import { HeldBytes } from '../../src/upstream/held-bytes.ts';
import { waits } from '../time-kit.ts';
import { broken, first, house, model, says, streams, target, timedOut } from './failover-kit.ts';

const [a, b] = [target('a', { weight: 99 }), target('b')];
const pair = model('pair', [a, b]);
const spare = model('spare', [target('s')]);
const role = { role: 'assistant' as const, content: '' };

// ---- streams --------------------------------------------------------------------------------------------------------

const unseen = {
  'an error first': streams(broken()),
  'a role, then an error,': streams(role, broken()),
  'an empty stream': streams(),
  'a role and the end': streams({ role: 'assistant' }),
  '"stop" after nothing at all': streams({ role: 'assistant', content: null }, '.stop'),
  'a time-out after the role': streams(role, timedOut()),
};
for (const [what, upstream] of Object.entries(unseen)) {
  test(`${what} moves a stream on unseen and counts against the first`, async () => {
    const { ask, room, exchange } = house([pair], { a: upstream, b: streams(role, 'well', '.stop') });
    const { text, answer, error } = await ask({ stream: true });
    assert.deepEqual([text, answer.facts.attempts, error], ['well', 2, undefined]);
    assert.equal(room.states(exchange().config)[0]?.consecutive_failures, 1);
  });
}

test('an empty answer that says so is an answer', async () => {
  const { ask, tries } = house([pair], { a: streams(role, '.stop'), b: says('b') });
  assert.equal((await ask({ stream: true })).text, '');
  assert.equal(tries.length, 1);
});

test('after content an error ends the stream; nothing is spliced on', async () => {
  const { ask, of } = house([pair], { a: streams(role, 'some ', 'text', broken()), b: says('b') });
  const { error } = await ask({ stream: true });
  assert.equal(error?.code, 'upstream_error');
  assert.equal(of('b').length, 0);
});

test('the head is handed out with the first content, not with the end', async () => {
  const { exchange, run } = house([pair], { a: streams(role, 'some', 500, 'text', '.stop') });
  const asked = exchange({ stream: true });
  let answer: Answer | undefined;
  const waited = await waits(async () => {
    answer = await run(asked);
  });
  assert.equal(waited, false);
  await answer?.stream?.cancel();
});

for (const [what, end] of Object.entries({ cut: broken(), stalled: timedOut() })) {
  test(`commit: complete begins a stream that is ${what} half-way anew elsewhere`, async () => {
    const upstreams = { a: streams(role, 'some ', end), b: streams(role, 'whole', '.stop') };
    const asked = house([pair], upstreams);
    assert.equal((await asked.ask({ stream: true, commit: 'complete' })).text, 'whole');
    const configured = house([model('m', [a, b], { commit: 'complete' })], upstreams);
    const { text, answer } = await configured.ask({ stream: true });
    assert.deepEqual([text, answer.facts.attempts], ['whole', 2]);
  });
}

test('the original tells what a cut answer had said', async () => {
  const { ask } = house([model('m', [target('a')], { max_attempts: 1, fallback_target: 'spare', commit: 'complete' }), spare], {
    a: streams(role, 'half ', 'an ans', broken()),
    s: streams('whole', '.stop'),
  });
  const { answer } = await ask({ stream: true });
  assert.equal(answer.facts.original?.content, 'half an ans');
});

test('an answer too large to be held back as a whole is one error, not a retry', async () => {
  const { ask, tries } = house([pair], { a: streams(...Array<string>(4000).fill('x'.repeat(9))), b: says('b') });
  const { error } = await ask({ stream: true, commit: 'complete' });
  assert.deepEqual([error?.code, tries.length], ['overloaded', 1]);
});

test('answers held back as a whole are bounded together, and what was read or left makes room again', async () => {
  const held = new HeldBytes(10_000);
  const waits = streams(...Array<string>(20).fill('x'), 60_000, '.stop');
  const text = streams(...Array<string>(20).fill('x'), '.stop');
  const { ask, exchange, run, tries } = house([pair], { a: first(1, waits, text), b: text }, { held });
  // Twenty chunks count 300 bytes each: two such answers are too much.
  const asked = exchange({ stream: true, commit: 'complete' });
  void run(asked);
  while (held.bytes < 6000) await new Promise((resolve) => setTimeout(resolve, 2));
  const { error } = await ask({ stream: true, commit: 'complete' });
  assert.deepEqual([error?.code, error?.headers['retry-after'], tries.length], ['overloaded', '1', 2]);
  asked.cancel(new HermesError('client_closed', 'left'));
  while (held.bytes > 0) await new Promise((resolve) => setTimeout(resolve, 2));
  for (let i = 0; i < 5; i++) assert.equal((await ask({ stream: true, commit: 'complete' })).text, 'x'.repeat(20));
  assert.equal(held.bytes, 0);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HermesError } from '../../src/contracts/errors.ts';
import { first, hangs, house, later, model, refuses, says, streams, target } from './failover-kit.ts';

const [a, b] = [target('a', { weight: 99 }), target('b')];
const hedged = model('m', [a, b], { hedge_ms: 40 });
const urgent = { priority: 'urgent' } as const;

test('an urgent request whose upstream is slow is asked elsewhere too, and the first content wins', async () => {
  const { ask, tries, room, exchange } = house([hedged], { a: hangs, b: says('b') });
  const { text, answer } = await ask(urgent);
  assert.equal(text, 'b');
  const gap = (tries[1]?.at ?? 0) - (tries[0]?.at ?? 0);
  assert.ok(gap >= 35, `${gap} ms`);
  assert.deepEqual([answer.facts.attempts, answer.facts.upstream], [2, 'b']);
  assert.equal(tries[0]?.exchange.cancelled?.code, 'superseded');
  assert.deepEqual(
    room.states(exchange().config).map(({ consecutive_failures }) => consecutive_failures),
    [0, 0],
  );
});

test('the loser is cancelled before the winner is handed out, whichever it is', async () => {
  const { exchange, run, tries } = house([hedged], { a: streams(60, 'a', 5, '.stop'), b: streams(500, 'b', '.stop') });
  const answer = await run(exchange({ ...urgent, stream: true }));
  assert.equal(answer.facts.upstream, 'a');
  assert.equal(tries[1]?.exchange.cancelled?.code, 'superseded');
  assert.equal(tries[0]?.exchange.cancelled, undefined);
  await answer.stream?.cancel();
});

test('a fast answer, and one that is not urgent, is not hedged', async () => {
  const { ask, tries } = house([hedged], { a: first(1, says('fast'), later(80, says('slow'))), b: says('b') });
  assert.equal((await ask(urgent)).text, 'fast');
  assert.equal((await ask()).text, 'slow');
  assert.deepEqual(
    tries.map(({ upstream }) => upstream),
    ['a', 'a'],
  );
});

test('a failure before the delay moves on as ever', async () => {
  const { ask } = house([hedged], { a: refuses('overloaded', 500), b: says('b') });
  const { text, waited } = await ask(urgent);
  assert.deepEqual([text, waited], ['b', false]);
});

test('when the hedge fails the first is still waited for', async () => {
  const { ask } = house([hedged], { a: later(120, says('a')), b: refuses('overloaded', 500) });
  assert.equal((await ask(urgent)).text, 'a');
});

test('both failing counts two tries and goes on', async () => {
  const { ask, tries } = house([hedged], { a: first(1, later(80, refuses('overloaded', 500)), says('a')), b: later(60, refuses('overloaded', 500)) });
  assert.equal((await ask(urgent)).text, 'a');
  assert.equal(tries.length, 3);
});

test('with no other upstream nothing is hedged', async () => {
  const { ask, tries } = house([model('m', [target('a')], { hedge_ms: 10 })], { a: later(50, says('a')) });
  assert.equal((await ask(urgent)).text, 'a');
  assert.equal(tries.length, 1);
});

test('a client that leaves ends both', async () => {
  const { exchange, run, tries } = house([hedged], { a: hangs, b: hangs });
  const leaving = exchange(urgent);
  const running = run(leaving);
  setTimeout(() => leaving.cancel(new HermesError('client_closed', 'gone')), 70);
  assert.equal((await running).error?.code, 'client_closed');
  assert.equal(tries.length, 2);
  assert.ok(tries.every(({ exchange: fork }) => fork.cancelled));
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Balancer } from '../../src/upstream/balancer.ts';
import { PeakEwma } from '../../src/upstream/latency.ts';
import { Places } from '../../src/upstream/places.ts';
import { target } from './failover-kit.ts';

const picks = (balancer: Balancer, weights: number[], count: number): string => {
  const candidates = weights.map((weight, index) => target('abcdefgh'[index] ?? '', { weight }));
  return Array.from({ length: count }, () => balancer.pick('m', 'weighted_round_robin', candidates, 0)?.id).join('');
};
const count = (text: string, letter: string): number => text.split(letter).length - 1;

test('70 to 30 over 1000 requests is 700 to 300', () => {
  const chosen = picks(new Balancer(), [70, 30], 1000);
  assert.deepEqual([count(chosen, 'a'), count(chosen, 'b')], [700, 300]);
});

test('the split is smooth: 7 to 3 never gives four of one in a row, nor two of the other', () => {
  const chosen = picks(new Balancer(), [7, 3], 200);
  assert.doesNotMatch(chosen, /aaaa|bb/);
});

test("nginx' own example: 5, 1, 1 is a a b a c a a", () => {
  assert.equal(picks(new Balancer(), [5, 1, 1], 7), 'aabacaa');
});

test("property: in every window of the weights' sum each upstream has exactly its weight", () => {
  const weights = fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 2, maxLength: 6 });
  fc.assert(
    fc.property(weights, fc.integer({ min: 1, max: 4 }), (list, rounds) => {
      const total = list.reduce((sum, weight) => sum + weight, 0);
      const chosen = picks(new Balancer(), list, total * rounds);
      for (const [index, weight] of list.entries()) assert.equal(count(chosen, 'abcdefgh'[index] ?? ''), weight * rounds);
    }),
    { numRuns: 60 },
  );
});

test('property: at no time has an upstream had more than one pick too many or too few, with two of them', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 50 }), (a, b) => {
      const chosen = picks(new Balancer(), [a, b], 200);
      for (let n = 1; n <= chosen.length; n++) assert.ok(Math.abs(count(chosen.slice(0, n), 'a') - (n * a) / (a + b)) <= 1);
    }),
    { numRuns: 40 },
  );
});

test('an upstream that is away for a while comes back to its share without a burst', () => {
  const balancer = new Balancer();
  const [a, b] = [target('a'), target('b')];
  for (let i = 0; i < 10; i++) balancer.pick('m', 'weighted_round_robin', [a, b], 0);
  for (let i = 0; i < 100; i++) balancer.pick('m', 'weighted_round_robin', [b], 0);
  const after = Array.from({ length: 10 }, () => balancer.pick('m', 'weighted_round_robin', [a, b], 0)?.id).join('');
  assert.match(after, /^(ab)+$|^(ba)+$/);
});

test('a preview chooses what the next pick takes, and moves nothing', () => {
  const balancer = new Balancer();
  const candidates = [target('a', { weight: 3 }), target('b', { weight: 2 })];
  for (let i = 0; i < 20; i++) {
    const seen = balancer.preview('m', 'weighted_round_robin', candidates, 0)?.id;
    assert.equal(balancer.preview('m', 'weighted_round_robin', candidates, 0)?.id, seen);
    assert.equal(balancer.pick('m', 'weighted_round_robin', candidates, 0)?.id, seen);
  }
});

test('priority is the order of the list', () => {
  assert.equal(new Balancer().pick('m', 'priority', [target('first', { weight: 1 }), target('second', { weight: 99 })], 0)?.id, 'first');
});

test('two models have rotations of their own over the same upstreams', () => {
  const balancer = new Balancer();
  const candidates = [target('a'), target('b')];
  assert.equal(balancer.pick('one', 'weighted_round_robin', candidates, 0)?.id, 'a');
  assert.equal(balancer.pick('two', 'weighted_round_robin', candidates, 0)?.id, 'a');
});

test('least_latency tries what was never tried, then prefers the faster', () => {
  const balancer = new Balancer();
  const candidates = [target('slow'), target('fast')];
  const call = (now: number): string => {
    const picked = balancer.pick('m', 'least_latency', candidates, now);
    assert.ok(picked);
    balancer.latency('m', picked).observe(picked.id === 'slow' ? 200 : 20, now);
    return picked.id;
  };
  const chosen = Array.from({ length: 20 }, (_, i) => call(i * 50));
  assert.deepEqual(chosen.slice(0, 2), ['slow', 'fast']);
  assert.ok(chosen.slice(2).every((id) => id === 'fast'));
});

test('least_latency spreads a burst by what is already running', () => {
  const balancer = new Balancer();
  const candidates = [target('a'), target('b')];
  for (const candidate of candidates) balancer.latency('m', candidate).observe(100, 0);
  const chosen = Array.from({ length: 10 }, () => {
    const picked = balancer.pick('m', 'least_latency', candidates, 0);
    if (picked) balancer.latency('m', picked).begin();
    return picked?.id;
  });
  assert.equal(chosen.filter((id) => id === 'a').length, 5);
});

test('a peak counts at once, is forgotten slowly, and a slow upstream is looked at again some time', () => {
  const latency = new PeakEwma();
  latency.observe(10, 0);
  latency.observe(500, 10);
  assert.ok(latency.cost(10) >= 500);
  latency.observe(10, 20);
  assert.ok(latency.cost(20) > 400);
  assert.ok(latency.cost(60_000) < 10);
});

test('failing fast does not look fast', () => {
  const latency = new PeakEwma();
  latency.observeFailure(1, 0);
  assert.ok(latency.cost(0) >= 1000);
});

test("a session's place is remembered until others have been seen more lately", () => {
  const places = new Places(2);
  places.set('one', 'a');
  places.set('two', 'b');
  places.set('one', 'a');
  places.set('three', 'c');
  assert.deepEqual([places.get('one'), places.get('two'), places.get('three')], ['a', undefined, 'c']);
});

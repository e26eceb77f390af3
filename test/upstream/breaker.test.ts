import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Breaker } from '../../src/upstream/breaker.ts';
import { gatherLimits } from '../../src/upstream/breaker-limits.ts';
import { model, target, toConfig } from './failover-kit.ts';

const COOLDOWN = 1000;
const LEASE = 5000;
const opened = (now = 0): Breaker => {
  const breaker = new Breaker();
  for (let i = 0; i < 3; i++) breaker.fail(breaker.begin(now, LEASE), now, 3, COOLDOWN);
  return breaker;
};

test('it opens at its threshold of consecutive failures, not before, and a success in between starts the count anew', () => {
  const breaker = new Breaker();
  for (let i = 0; i < 2; i++) breaker.fail(breaker.begin(0, LEASE), 0, 3, COOLDOWN);
  assert.equal(breaker.state(0), 'closed');
  breaker.succeed(breaker.begin(0, LEASE));
  for (let i = 0; i < 2; i++) breaker.fail(breaker.begin(0, LEASE), 0, 3, COOLDOWN);
  assert.equal(breaker.state(0), 'closed');
  assert.equal(breaker.fail(breaker.begin(0, LEASE), 0, 3, COOLDOWN), true);
  assert.equal(breaker.state(0), 'open');
  assert.equal(breaker.available(0), false);
});

test('after the cool-down exactly one probe goes', () => {
  const breaker = opened();
  assert.equal(breaker.available(COOLDOWN - 1), false);
  assert.equal(breaker.available(COOLDOWN), true);
  breaker.begin(COOLDOWN, LEASE);
  assert.equal(breaker.available(COOLDOWN), false);
});

const exits: [string, (breaker: Breaker, permit: number) => void, 'closed' | 'open' | 'half_open'][] = [
  ['well', (breaker, permit) => breaker.succeed(permit), 'closed'],
  ['badly', (breaker, permit) => void breaker.fail(permit, COOLDOWN, 3, COOLDOWN), 'open'],
  ['with the client leaving or a refused key', (breaker, permit) => breaker.release(permit), 'half_open'],
  ['with first content', (breaker, permit) => breaker.trust(permit), 'closed'],
];
for (const [how, exit, state] of exits) {
  test(`a probe that ends ${how} gives its slot back`, () => {
    const breaker = opened();
    exit(breaker, breaker.begin(COOLDOWN, LEASE));
    assert.equal(breaker.state(COOLDOWN), state);
    assert.equal(breaker.available(COOLDOWN + COOLDOWN), true);
  });
}

test('a probe that is lost frees its slot when its lease is over, and its late end harms nobody', () => {
  const breaker = opened();
  const lost = breaker.begin(COOLDOWN, LEASE);
  assert.equal(breaker.available(COOLDOWN + LEASE - 1), false);
  assert.equal(breaker.available(COOLDOWN + LEASE), true);
  const second = breaker.begin(COOLDOWN + LEASE, LEASE);
  breaker.release(lost);
  assert.equal(breaker.available(COOLDOWN + LEASE), false);
  breaker.succeed(second);
  assert.equal(breaker.state(COOLDOWN + LEASE), 'closed');
});

test('calls that began before it opened say nothing: neither close it nor prolong it', () => {
  const breaker = new Breaker();
  const [old, older] = [breaker.begin(0, LEASE), breaker.begin(0, LEASE)];
  for (let i = 0; i < 3; i++) breaker.fail(breaker.begin(0, LEASE), 0, 3, COOLDOWN);
  breaker.succeed(old);
  breaker.fail(older, 500, 3, COOLDOWN);
  assert.equal(breaker.state(500), 'open');
  assert.equal(breaker.openUntil, COOLDOWN);
});

test('an upstream that brings content and is then cut opens again at once', () => {
  const breaker = opened();
  const permit = breaker.begin(COOLDOWN, LEASE);
  breaker.trust(permit);
  assert.equal(breaker.available(COOLDOWN), true);
  breaker.fail(permit, COOLDOWN, 3, COOLDOWN);
  assert.equal(breaker.state(COOLDOWN), 'open');
});

test('429 sets it aside for as long as it asked, and no failure is counted', () => {
  const breaker = new Breaker();
  breaker.setAside(2000);
  breaker.setAside(1000);
  assert.deepEqual([breaker.state(1999), breaker.available(1999), breaker.available(2000), breaker.failures], ['set_aside', false, true, 0]);
});

test('drained gets nothing until it is reset, which forgets everything', () => {
  const breaker = opened();
  breaker.setAside(9000);
  breaker.drained = true;
  assert.equal(breaker.available(99_999), false);
  breaker.reset();
  assert.deepEqual([breaker.state(0), breaker.available(0), breaker.failures], ['closed', true, 0]);
});

test('property: whatever happens, no probe slot stays taken and never are two probes out', () => {
  const step = fc.constantFrom('begin', 'succeed', 'fail', 'release', 'wait', 'aside');
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const breaker = new Breaker();
      const running: number[] = [];
      let now = 0;
      const acts: Record<string, () => void> = {
        begin: () => void (breaker.available(now) && running.push(breaker.begin(now, Number.MAX_SAFE_INTEGER))),
        succeed: () => void (running.length > 0 && breaker.succeed(running.pop() ?? 0)),
        fail: () => void (running.length > 0 && breaker.fail(running.shift() ?? 0, now, 2, 100)),
        release: () => void (running.length > 0 && breaker.release(running.shift() ?? 0)),
        wait: () => {
          now += 60;
        },
        aside: () => breaker.setAside(now + 50),
      };
      for (const name of steps) {
        acts[name]?.();
        assert.ok(running.filter((permit) => permit !== 0).length <= 1);
      }
      for (const permit of running) breaker.release(permit);
      assert.equal(breaker.available(now + 1000), true);
    }),
    { numRuns: 300 },
  );
});

test('models that share an upstream: of the written values the lowest threshold and the longest cool-down hold', () => {
  const shared = target('shared');
  const config = toConfig([
    model('one', [shared], { failure_threshold: 4, cooldown_ms: 100, written: ['failure_threshold', 'cooldown_ms'] }),
    model('two', [shared], { failure_threshold: 8, cooldown_ms: 900, written: ['failure_threshold', 'cooldown_ms'] }),
    model('plain', [shared], { failure_threshold: 1, cooldown_ms: 30_000, written: [] }),
  ]);
  assert.deepEqual(gatherLimits(config).get(shared.identity), { threshold: 4, cooldownMs: 900 });
});

test('an upstream of which nobody says anything has the defaults', () => {
  const config = toConfig([model('plain', [target('a')], { failure_threshold: 5, cooldown_ms: 30_000, written: [] })]);
  assert.equal(gatherLimits(config).get('identity of a'), undefined);
});

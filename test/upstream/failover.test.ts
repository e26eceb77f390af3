import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HermesError } from '../../src/contracts/errors.ts';
import { startStopwatch, waits } from '../time-kit.ts';
import { broken, fails, first, house, later, model, refuses, says, target, timedOut, type Upstream } from './failover-kit.ts';

const [a, b] = [target('a', { weight: 99 }), target('b')];
const pair = model('pair', [a, b]);
const lone = model('lone', [target('a')]);

// ---- what moves on --------------------------------------------------------------------------------------------------

const movingOn = {
  'a 500': refuses('overloaded', 500),
  'a 503': refuses('overloaded', 503),
  'a 529': refuses('overloaded', 529),
  'a 408': refuses('timeout', 408),
  'a 409': refuses('conflict', 409),
  'a 429': refuses('rate_limited', 429, 30_000),
  'a 401': refuses('auth', 401),
  'a 402': refuses('quota', 402),
  'a 403': refuses('auth', 403),
  'a 404': refuses('model_missing', 404),
  'a reset connection': fails(broken()),
  'a time-out': fails(timedOut()),
  'a 200 with no answer in it': fails(new HermesError('upstream_empty_answer', 'nothing')),
};
for (const [what, upstream] of Object.entries(movingOn)) {
  test(`${what} moves on to the other upstream at once, unmarked`, async () => {
    const { ask, tries } = house([pair], { a: upstream, b: says('well') });
    const { text, answer, waited } = await ask();
    assert.equal(text, 'well');
    assert.deepEqual(
      tries.map(({ upstream: id }) => id),
      ['a', 'b'],
    );
    assert.deepEqual([answer.facts.attempts, answer.facts.upstream, answer.facts.degraded], [2, 'b', undefined]);
    assert.equal(waited, false);
  });
}

const final = {
  'a 400': refuses('invalid', 400),
  'a 422': refuses('invalid', 422),
  'a content-policy refusal': refuses('content_policy', 400),
};
for (const [what, upstream] of Object.entries(final)) {
  test(`${what} goes to the client as it is, never around it`, async () => {
    const { ask, tries } = house([pair], { a: upstream, b: says('well') });
    const { error, answer } = await ask();
    assert.equal(error?.message, what === 'a 422' ? 'boom 422' : 'boom 400');
    assert.deepEqual([error?.type, error?.wireCode], ['some_type', 'some_code']);
    assert.deepEqual([tries.length, answer.facts.attempts], [1, 1]);
  });
}

test('the first retry starts without a pause, not even a turn of the event loop, when another upstream is free', async () => {
  const order: string[] = [];
  const failing: Upstream = async (tried) => {
    const answer = await later(20, refuses('overloaded', 500))(tried);
    order.push('failed');
    setImmediate(() => order.push('turned'));
    return answer;
  };
  const well: Upstream = (tried) => {
    order.push('retried');
    return says('well')(tried);
  };
  const { ask } = house([pair], { a: failing, b: well });
  await ask();
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(order, ['failed', 'retried', 'turned']);
});

test('a single upstream is tried again after its backoff, up to max_attempts', async () => {
  const { ask, tries } = house([lone], { a: first(2, refuses('overloaded', 500), says('well')) });
  assert.equal((await ask()).text, 'well');
  assert.equal(tries.length, 3);
});

test('max_attempts is the end, and the error tells what was tried without any address', async () => {
  const { ask, tries } = house([model('two', [a, b], { max_attempts: 2 })], { a: refuses('overloaded', 500), b: refuses('overloaded', 500) });
  const { error, answer } = await ask();
  assert.equal(tries.length, 2);
  assert.equal(error?.code, 'upstream_error');
  assert.equal(error?.headers['x-should-retry'], 'false');
  assert.match(error?.message ?? '', /"two".*a answered 500.*b answered 500/);
  assert.doesNotMatch(error?.message ?? '', /upstream\.invalid/);
  assert.deepEqual(error?.details?.attempts, [
    { model: 'two', upstream: 'a', outcome: 'failed', status: 500 },
    { model: 'two', upstream: 'b', outcome: 'failed', status: 500 },
  ]);
  assert.equal(answer.facts.attempts, 2);
});

test('with all untried ones gone, those that failed are asked again by turns', async () => {
  const { ask, tries } = house([model('m', [a, b], { max_attempts: 4 })], { a: refuses('overloaded', 500), b: refuses('overloaded', 500) });
  await ask();
  assert.deepEqual(tries.map(({ upstream }) => upstream).slice(0, 2), ['a', 'b']);
  assert.equal(tries.length, 4);
});

test('one that stayed silent to its limit is not asked again', async () => {
  const { ask, tries } = house([lone], { a: fails(timedOut()) });
  const { error } = await ask();
  assert.deepEqual([tries.length, error?.code, error?.status], [1, 'upstream_timeout', 504]);
});

// ---- accounts -------------------------------------------------------------------------------------------------------

const accounts = {
  401: ['auth', 'upstream_auth_failed'],
  403: ['auth', 'upstream_auth_failed'],
  402: ['quota', 'upstream_quota_exhausted'],
  404: ['model_missing', 'upstream_model_missing'],
} as const;
for (const [status, [kind, code]] of Object.entries(accounts)) {
  test(`${status} with nothing left is 502 ${code}, and the same upstream is not asked twice`, async () => {
    const { ask, tries } = house([lone], { a: refuses(kind, Number(status)) });
    const { error } = await ask();
    assert.deepEqual([error?.status, error?.code, error?.headers['x-should-retry'], tries.length], [502, code, 'false', 1]);
  });
}

test('an upstream without its key is passed over', async () => {
  const { ask, tries } = house([model('m', [target('a', { weight: 99, apiKeyEnv: 'NO_KEY' }), b])], { b: says('well') });
  assert.equal((await ask()).text, 'well');
  assert.equal(tries.length, 1);
});

test('a model without its key is 500 upstream_key_missing', async () => {
  const { ask, tries } = house([model('m', [target('a', { apiKeyEnv: 'NO_KEY' })])], {});
  const { error } = await ask();
  assert.deepEqual([error?.status, error?.code, tries.length], [500, 'upstream_key_missing', 0]);
});

// ---- rate limits ----------------------------------------------------------------------------------------------------

test('a retry-after is waited for to its end', async () => {
  const { ask, tries } = house([lone], { a: first(1, refuses('rate_limited', 429, 120), says('well')) });
  // A 429 that says nothing of time would be a second.
  const watch = startStopwatch();
  assert.equal((await ask()).text, 'well');
  assert.ok(watch.stop() < 600, `${watch.ms()} ms`);
  const gap = (tries[1]?.at ?? 0) - (tries[0]?.at ?? 0);
  assert.ok(gap >= 115, `${gap} ms`);
});

test('a retry-after of 0 is at once', async () => {
  // A backoff would be ten seconds: too long to be waited for.
  const options = { environment: { random: () => 50 } };
  const { ask } = house([lone], { a: first(1, refuses('rate_limited', 429, 0), says('well')) }, options);
  const watch = startStopwatch();
  assert.equal((await ask()).text, 'well');
  assert.ok(watch.stop() < 2000, `${watch.ms()} ms`);
});

test('one beyond max_retry_after_ms is not waited for: 429 with retry-after, and clients may retry', async () => {
  const { ask, tries } = house([lone], { a: refuses('rate_limited', 429, 30_000) });
  const { error, waited } = await ask();
  assert.deepEqual(
    [error?.status, error?.code, error?.headers['retry-after'], error?.headers['x-should-retry']],
    [429, 'rate_limit_exceeded', '30', undefined],
  );
  assert.equal(tries.length, 1);
  assert.equal(waited, false);
});

test('while all are set aside the next request is refused at once with the time that is left', async () => {
  const { ask, tries } = house([lone], { a: refuses('rate_limited', 429, 30_000) });
  await ask();
  const { error } = await ask();
  assert.equal(tries.length, 1);
  assert.equal(error?.code, 'rate_limit_exceeded');
  assert.ok(Number(error?.headers['retry-after']) > 25 && Number(error?.headers['retry-after']) <= 30);
});

test('one beyond the deadline is not waited for: 429', async () => {
  const { ask } = house([lone], { a: refuses('rate_limited', 429, 2000) });
  const { error, waited } = await ask({ deadline: 500 });
  assert.equal(error?.status, 429);
  assert.equal(waited, false);
});

test('429 sets an upstream aside for as long as it asked', async () => {
  let now = 1_000_000;
  const upstreams = { a: first(1, refuses('rate_limited', 429, 4000), says('a')), b: says('b') };
  const { ask, of } = house([pair], upstreams, { environment: { now: () => now } });
  for (let i = 0; i < 4; i++) assert.equal((await ask()).text, 'b');
  now += 3990;
  assert.equal((await ask()).text, 'b');
  assert.equal(of('a').length, 1);
  now += 20;
  assert.equal((await ask()).text, 'a');
});

// ---- time -----------------------------------------------------------------------------------------------------------

test('retries stay inside the deadline', async () => {
  const slow = later(60, refuses('overloaded', 500));
  const { ask, tries } = house([model('m', [a, b], { max_attempts: 50, failure_threshold: 100 })], { a: slow, b: slow });
  const { error } = await ask({ deadline: 150 });
  assert.ok([502, 503, 504].includes(error?.status ?? 0));
  assert.ok(tries.length >= 2 && tries.length <= 4, `${tries.length} tries of 60 ms`);
});

test('a client that leaves during a backoff ends it at once', async () => {
  const { exchange, run, tries } = house([lone], { a: refuses('rate_limited', 429, 4000) });
  const leaving = exchange();
  const running = run(leaving);
  await new Promise((resolve) => setTimeout(resolve, 30));
  leaving.cancel(new HermesError('client_closed', 'gone'));
  assert.equal(await waits(() => running), false);
  assert.equal((await running).error?.code, 'client_closed');
  assert.equal(tries.length, 1);
});

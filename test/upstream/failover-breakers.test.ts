import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HermesError } from '../../src/contracts/errors.ts';
import type { HotStore } from '../../src/contracts/hot-store.ts';
import { broken, fails, first, hangs, house, later, model, refuses, says, streams, target, timedOut } from './failover-kit.ts';

const [a, b] = [target('a', { weight: 99 }), target('b')];
const pair = model('pair', [a, b]);
const lone = model('lone', [target('a')]);
const role = { role: 'assistant' as const, content: '' };

// ---- breakers -------------------------------------------------------------------------------------------------------

test('the breaker opens at its threshold: 0 of the next 1000 go there, and it is back within one cool-down', async () => {
  let ill = true;
  let skipped = 0;
  const environment = { now: () => Date.now() + skipped };
  const { ask, of } = house(
    [model('m', [a, b], { failure_threshold: 3, cooldown_ms: 60_000 })],
    { a: (tried) => (ill ? refuses('overloaded', 500) : says('a'))(tried), b: says('b') },
    { environment },
  );
  for (let i = 0; i < 3; i++) assert.equal((await ask()).text, 'b');
  const before = of('a').length;
  assert.equal(before, 3);
  for (let i = 0; i < 1000; i++) await ask();
  assert.equal(of('a').length, before);
  ill = false;
  skipped = 60_100;
  for (let i = 0; i < 4; i++) await ask();
  assert.ok(of('a').length > before);
});

test('an open breaker with nothing else is 503 at once, with the time until its probe', async () => {
  const { ask, tries } = house([model('m', [target('a')], { failure_threshold: 1, max_attempts: 1 })], { a: refuses('overloaded', 500) });
  await ask();
  const { error } = await ask();
  assert.deepEqual([error?.status, error?.code, error?.headers['x-should-retry'], tries.length], [503, 'upstream_unavailable', 'false', 1]);
  assert.ok(Number(error?.headers['retry-after']) > 0);
});

const probes = {
  'a 401': refuses('auth', 401),
  'a 400': refuses('invalid', 400),
  'a context overflow': refuses('context_overflow', 400),
  'a stream that says nothing': streams(),
};
for (const [what, upstream] of Object.entries(probes)) {
  test(`the probe's slot comes back when it ends in ${what}`, async () => {
    const trip = model('m', [a, b], { failure_threshold: 1, cooldown_ms: 30 });
    const { ask, of } = house([trip], {
      a: (tried) => (tried.earlier === 0 ? refuses('overloaded', 500) : tried.earlier === 1 ? upstream : says('healed'))(tried),
      b: says('b'),
    });
    await ask();
    await new Promise((resolve) => setTimeout(resolve, 40));
    await ask();
    assert.equal(of('a').length, 2);
    await new Promise((resolve) => setTimeout(resolve, 40));
    assert.equal((await ask()).text, 'healed');
  });
}

test("the probe's slot comes back when its client leaves, and when a step inside throws", async () => {
  const trip = model('m', [a, b], { failure_threshold: 1, cooldown_ms: 20 });
  const { ask, of, exchange, run } = house([trip], {
    a: (tried) => {
      if (tried.earlier === 0) return refuses('overloaded', 500)(tried);
      if (tried.earlier === 1) return hangs(tried);
      if (tried.earlier === 2) throw new Error('a fault of ours');
      return says('healed')(tried);
    },
    b: says('b'),
  });
  await ask();
  await new Promise((resolve) => setTimeout(resolve, 30));
  const leaving = exchange();
  const running = run(leaving);
  leaving.cancel(new HermesError('client_closed', 'gone'));
  assert.equal((await running).error?.code, 'client_closed');
  assert.equal((await ask()).error?.code, 'internal_error');
  assert.equal((await ask()).text, 'healed');
  assert.equal(of('a').length, 4);
});

test('while a probe is under way the others go elsewhere', async () => {
  const trip = model('m', [a, b], { failure_threshold: 1, cooldown_ms: 30 });
  const { ask, of } = house([trip], { a: first(1, refuses('overloaded', 500), later(60, says('a'))), b: says('b') });
  await ask();
  await new Promise((resolve) => setTimeout(resolve, 40));
  const told = await Promise.all(Array.from({ length: 10 }, () => ask()));
  assert.deepEqual(told.map(({ text }) => text).sort(), ['a', ...Array(9).fill('b')].sort());
  assert.equal(of('a').length, 2);
});

test('users pressing Stop, before the first byte and after it, never count and never move on', async () => {
  const { exchange, run, of, room } = house([model('m', [a, b], { failure_threshold: 1 })], {
    a: first(1, hangs, streams(role, 'some', 1000, 'text', '.stop')),
    b: says('b'),
  });
  const one = exchange({ stream: true });
  const waiting = run(one);
  one.cancel(new HermesError('client_closed', 'gone'));
  assert.equal((await waiting).error?.code, 'client_closed');
  const two = exchange({ stream: true });
  const { stream } = await run(two);
  await stream?.read();
  two.cancel(new HermesError('client_closed', 'gone'));
  await stream?.cancel();
  assert.deepEqual([of('a').length, of('b').length], [2, 0]);
  assert.deepEqual(
    room.states(two.config).map(({ state, consecutive_failures }) => [state, consecutive_failures]),
    [
      ['closed', 0],
      ['closed', 0],
    ],
  );
});

test('our own time-out and a passed deadline do count', async () => {
  const { ask, room, exchange } = house([model('m', [a], { failure_threshold: 10 })], { a: first(1, fails(timedOut()), hangs) });
  await ask();
  const { error } = await ask({ deadline: 40 });
  assert.deepEqual([error?.code, error?.status], ['deadline_exceeded', 504]);
  assert.equal(room.states(exchange().config)[0]?.consecutive_failures, 2);
});

test('overflow, refused keys and bad requests do not mark an upstream; cut streams do', async () => {
  const { ask, room, exchange } = house([model('m', [a], { failure_threshold: 10 })], {
    a: ({ earlier, ...tried }) =>
      [refuses('context_overflow', 400), refuses('auth', 401), refuses('invalid', 400), streams(role, 'some', broken())][earlier]?.({ earlier, ...tried }) ??
      says('')({ earlier, ...tried }),
  });
  const failures = (): number | undefined => room.states(exchange().config)[0]?.consecutive_failures;
  for (let i = 0; i < 3; i++) await ask();
  assert.equal(failures(), 0);
  const { text, error } = await ask({ stream: true });
  assert.deepEqual([text, error?.code], [undefined, 'upstream_error']);
  assert.equal(failures(), 1);
});

test('states are shown, in the gauge too; drain and reset act at once', async () => {
  const { ask, room, exchange, values, of } = house([model('m', [a, b], { failure_threshold: 1 })], { a: refuses('overloaded', 500), b: says('b') });
  await ask();
  const { config } = exchange();
  const [state] = room.states(config);
  assert.deepEqual([state?.id, state?.state, state?.models, typeof state?.until], ['a', 'open', ['m'], 'string']);
  assert.deepEqual(
    state?.changes.map(({ from, to, consecutive_failures }) => [from, to, consecutive_failures]),
    [['closed', 'open', 1]],
  );
  assert.deepEqual(state?.weights, [{ model: 'm', weight: 99 }]);
  assert.equal(values.get('hermes_upstream_state a'), 2);
  assert.deepEqual(await Promise.all([room.reset('a'), room.drain('b'), room.drain('nobody')]), [true, true, false]);
  assert.equal(values.get('hermes_upstream_state a'), 0);
  const { error } = await ask();
  assert.equal(error?.code, 'upstream_error');
  assert.deepEqual([of('a').length, of('b').length], [2, 1]);
  assert.deepEqual(
    room.preview(pair, undefined).map((entry) => [entry.upstream, entry.state, entry.picked]),
    [
      ['a', 'open', false],
      ['b', 'drained', false],
    ],
  );
});

// ---- what is told and shared ----------------------------------------------------------------------------------------

test('time spent on tries that came to nothing, and on pauses, is waiting for upstreams', async () => {
  const { ask } = house([lone], { a: first(1, later(30, refuses('rate_limited', 429, 60)), says('well')) });
  const { answer } = await ask();
  assert.ok((answer.facts.waitedMs ?? 0) >= 85, `${answer.facts.waitedMs} ms`);
});

test('a later model call of the same request counts its own tries', async () => {
  const { exchange, run } = house([pair], { a: first(1, refuses('overloaded', 500), says('a')), b: says('b') });
  const round = exchange();
  assert.equal((await run(round)).facts.attempts, 2);
  assert.equal((await run(round.fork() as typeof round)).facts.attempts, 1);
  assert.equal(round.calls.length, 3);
});

test('every upstream has its state in the metrics from the start', () => {
  const { values } = house([pair], {});
  assert.deepEqual([values.get('hermes_upstream_state a'), values.get('hermes_upstream_state b')], [0, 0]);
});

/** As much of a shared hot store as breakers use. */
function sharedStore(over: Partial<HotStore> = {}): HotStore {
  const values = new Map<string, string>();
  const store: Partial<HotStore> = {
    name: 'redis',
    shared: true,
    get: async (key) => values.get(key),
    set: async (key, value) => Boolean(values.set(key, value)),
    delete: async (key) => void values.delete(key),
    ...over,
  };
  return store as HotStore;
}

test('instances share open breakers and set-asides through the hot store, and their end', async () => {
  let skipped = 0;
  const options = { hot: sharedStore(), environment: { now: () => Date.now() + skipped } };
  const trip = model('m', [a, b], { failure_threshold: 1, cooldown_ms: 60_000 });
  const one = house([trip], { a: refuses('overloaded', 500), b: says('b') }, options);
  const two = house([trip], { a: says('a'), b: says('b') }, options);
  assert.equal((await two.ask()).text, 'a');
  await one.ask();
  skipped = 2000;
  await two.ask();
  assert.equal((await two.ask()).text, 'b');
  assert.equal(two.room.states(two.exchange().config)[0]?.state, 'open');
});

test('a hot store that is away changes nothing', async () => {
  const away = (): Promise<never> => Promise.reject(new Error('away'));
  const { ask } = house([pair], { a: refuses('overloaded', 500), b: says('b') }, { hot: sharedStore({ get: away, set: away, delete: away }) });
  for (let i = 0; i < 8; i++) assert.equal((await ask()).text, 'b');
});

/** Two instances over one store; more of them may be started. Time goes on by `skip`. */
function instances(hot: HotStore) {
  let skipped = 0;
  const environment = { now: () => Date.now() + skipped };
  const trip = model('m', [a, b], { failure_threshold: 1, cooldown_ms: 60_000 });
  const start = (of: Parameters<typeof house>[1] = { a: says('a'), b: says('b') }) => {
    const made = house([trip], of, { hot, environment });
    const state = () => made.room.states(made.exchange().config)[0]?.state;
    return { ...made, state, said: async () => (await made.ask()).text };
  };
  return {
    start,
    skip(ms: number) {
      skipped += ms;
    },
  };
}

test('a drain reaches every instance, an idle and a new one at its first request, until a reset does', async () => {
  const { start, skip } = instances(sharedStore());
  const [one, two] = [start(), start()];
  assert.equal(await two.said(), 'a');
  await one.room.drain('a');
  skip(1000);
  assert.equal(await two.said(), 'b');
  assert.equal(two.values.get('hermes_upstream_state a'), 4);
  const restarted = start();
  assert.deepEqual([await restarted.said(), restarted.state()], ['b', 'drained']);
  skip(86_400_000);
  await two.room.reset('a');
  assert.deepEqual([await one.said(), await restarted.said(), await start().said()], ['a', 'a', 'a']);
});

test('a reset closes what is open everywhere, and a drain brings no old failure back', async () => {
  const { start, skip } = instances(sharedStore());
  const one = start({ a: first(1, refuses('overloaded', 500), says('a')), b: says('b') });
  const two = start();
  assert.deepEqual([await one.said(), await two.said(), two.state()], ['b', 'b', 'open']);
  skip(1000);
  await two.room.drain('a');
  await two.room.reset('a');
  skip(1000);
  assert.deepEqual([await one.said(), one.state(), await two.said(), two.state()], ['a', 'closed', 'a', 'closed']);
  await one.room.drain('a');
  skip(2000);
  assert.deepEqual([await two.said(), two.state()], ['b', 'drained']);
});

test('what was said while the store was away, or what it has lost, is told again', async () => {
  let values = new Map<string, string>();
  let away = true;
  const there = async <T>(answer: () => T): Promise<T> => {
    if (away) throw new Error('away');
    return answer();
  };
  const store = sharedStore({
    get: (key) => there(() => values.get(key)),
    set: (key, value) => there(() => Boolean(values.set(key, value))),
    delete: (key) => there(() => void values.delete(key)),
  });
  const { start, skip } = instances(store);
  const [one, two] = [start(), start()];
  assert.equal(await one.room.drain('a'), true);
  assert.deepEqual([await one.said(), await two.said()], ['b', 'a']);
  away = false;
  skip(2000);
  assert.deepEqual([await one.said(), await two.said()], ['b', 'b']);
  values = new Map();
  skip(2000);
  assert.deepEqual([await one.said(), await start().said()], ['b', 'b']);
});

test('requests that follow each other do not wait for the store', async () => {
  let asked = 0;
  let silent = false;
  const store = sharedStore();
  const get: HotStore['get'] = (key) => {
    asked++;
    return silent ? new Promise(() => undefined) : store.get(key);
  };
  const { start, skip } = instances({ ...store, get });
  const one = start();
  await one.ask();
  const before = asked;
  for (let i = 0; i < 5; i++) await one.ask();
  assert.equal(asked, before);
  silent = true;
  skip(900);
  assert.equal(await one.said(), 'a');
  assert.ok(asked > before);
});

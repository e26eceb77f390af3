import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HermesError } from '../../src/contracts/errors.ts';
import type { HotStore } from '../../src/contracts/hot-store.ts';
import { broken, fails, first, hangs, house, later, model, refuses, says, streams, target, timedOut, type Upstream } from './failover-kit.ts';

const [a, b] = [target('a', { weight: 99 }), target('b')];
const pair = model('pair', [a, b]);
const lone = model('lone', [target('a')]);
const spare = model('spare', [target('s')]);
const role = { role: 'assistant' as const, content: '' };

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
    const { text, answer, ms } = await ask();
    assert.equal(text, 'well');
    assert.deepEqual(
      tries.map(({ upstream: id }) => id),
      ['a', 'b'],
    );
    assert.deepEqual([answer.facts.attempts, answer.facts.upstream, answer.facts.degraded], [2, 'b', undefined]);
    assert.ok(ms < 100, `${ms} ms`);
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

test('the first retry starts within 5 ms of the failure when another upstream is free', async () => {
  let failedAt = 0;
  const failing: Upstream = async (tried) => {
    const answer = await later(20, refuses('overloaded', 500))(tried);
    failedAt = performance.now();
    return answer;
  };
  const { ask, of } = house([pair], { a: failing, b: says('well') });
  await ask();
  const gap = (of('b')[0]?.at ?? 0) - failedAt;
  assert.ok(gap >= 0 && gap < 5, `${gap} ms`);
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
  assert.equal((await ask()).text, 'well');
  const gap = (tries[1]?.at ?? 0) - (tries[0]?.at ?? 0);
  assert.ok(gap >= 115 && gap < 600, `${gap} ms`);
});

test('a retry-after of 0 is at once', async () => {
  const { ask } = house([lone], { a: first(1, refuses('rate_limited', 429, 0), says('well')) });
  const { text, ms } = await ask();
  assert.equal(text, 'well');
  assert.ok(ms < 100, `${ms} ms`);
});

test('one beyond max_retry_after_ms is not waited for: 429 with retry-after, and clients may retry', async () => {
  const { ask, tries } = house([lone], { a: refuses('rate_limited', 429, 30_000) });
  const { error, ms } = await ask();
  assert.deepEqual(
    [error?.status, error?.code, error?.headers['retry-after'], error?.headers['x-should-retry']],
    [429, 'rate_limit_exceeded', '30', undefined],
  );
  assert.equal(tries.length, 1);
  assert.ok(ms < 200, `${ms} ms`);
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
  const { error, ms } = await ask({ deadline: 500 });
  assert.equal(error?.status, 429);
  assert.ok(ms < 300, `${ms} ms`);
});

test('429 sets an upstream aside for as long as it asked', async () => {
  const { ask, of } = house([pair], { a: first(1, refuses('rate_limited', 429, 150), says('a')), b: says('b') });
  for (let i = 0; i < 4; i++) assert.equal((await ask()).text, 'b');
  assert.equal(of('a').length, 1);
  await new Promise((resolve) => setTimeout(resolve, 170));
  assert.equal((await ask()).text, 'a');
});

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
  const { error, ms } = await ask({ deadline: 40 });
  assert.deepEqual([error?.code, error?.status], ['deadline_exceeded', 504]);
  assert.ok(ms < 300);
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
  assert.equal(values.get('hermes_upstream_state a'), 2);
  assert.equal(room.reset('a'), true);
  assert.equal(room.drain('b'), true);
  assert.equal(room.drain('nobody'), false);
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

// ---- context and capabilities ---------------------------------------------------------------------------------------

test('after an overflow only a larger or unstated window is tried', async () => {
  const sized = model('m', [
    target('small', { contextWindow: 1000, weight: 9 }),
    target('same', { contextWindow: 1000, weight: 8 }),
    target('large', { contextWindow: 8000, weight: 1 }),
  ]);
  const { ask, tries } = house([sized], { small: refuses('context_overflow', 400), same: refuses('context_overflow', 400), large: says('well') });
  assert.equal((await ask()).text, 'well');
  assert.deepEqual(
    tries.map(({ upstream }) => upstream),
    ['small', 'large'],
  );
});

test('an overflow everywhere is 400 context_length_exceeded, once an upstream', async () => {
  const { ask, tries } = house([pair], { a: refuses('context_overflow', 400), b: refuses('context_overflow', 400) });
  const { error } = await ask();
  assert.deepEqual([error?.status, error?.code, error?.message, tries.length], [400, 'context_length_exceeded', 'boom 400', 2]);
});

test('an overflow beside a passing failure is not the last word', async () => {
  const { ask } = house([pair], { a: refuses('context_overflow', 400), b: refuses('overloaded', 503) });
  assert.equal((await ask()).error?.status, 503);
});

const image = { messages: [{ role: 'user' as const, content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } }] }] };
const tools = { tools: [{ type: 'function', function: { name: 'f' } }] };
const schema = { response_format: { type: 'json_schema', json_schema: { name: 'x', schema: {} } } };
for (const [ability, request] of Object.entries({ vision: image, tools, json_schema: schema })) {
  test(`a request that needs ${ability} never goes where it cannot be served`, async () => {
    const blind = target('blind', { weight: 99, supports: { vision: true, tools: true, json_schema: true, [ability]: false } });
    const { ask, tries } = house([model('m', [blind, b]), model('only', [blind])], { blind: says('no'), b: refuses('overloaded', 500) });
    assert.equal((await ask({ request })).error?.code, 'upstream_error');
    assert.ok(tries.every(({ upstream }) => upstream === 'b'));
    const { error } = await ask({ model: 'only', request });
    assert.deepEqual([error?.status, error?.code], [400, 'unsupported_parameter']);
    assert.equal((await ask({ model: 'only' })).text, 'no');
  });
}

test('weight 0 serves nothing', async () => {
  const { ask, tries } = house([model('m', [target('a'), target('b', { weight: 0 })])], { a: refuses('overloaded', 500), b: says('no') });
  assert.equal((await ask()).error?.code, 'upstream_error');
  assert.ok(tries.every(({ upstream }) => upstream === 'a'));
});

// ---- fallbacks ------------------------------------------------------------------------------------------------------

const falling = (target_id = 'spare') => model('pair', [a, b], { max_attempts: 2, fallback_target: target_id });

test("all down: the fallback answers, degraded, with the first choice's own outcome", async () => {
  const { ask } = house([falling(), spare], { a: refuses('overloaded', 500), b: refuses('overloaded', 503), s: says('sorry') });
  const { text, answer } = await ask();
  assert.equal(text, 'sorry');
  const { degraded, original, model: used, upstream, attempts } = answer.facts;
  assert.deepEqual([degraded, used, upstream, attempts], [true, 'spare', 's', 3]);
  assert.deepEqual(original, {
    model: 'pair',
    upstream: 'a',
    status: 500,
    error: { message: 'boom 500', type: 'some_type', code: 'some_code' },
    content: null,
  });
});

test('fallbacks chain, each by its own settings', async () => {
  const link = model('link', [target('l')], { max_attempts: 2, fallback_target: 'spare' });
  const { ask, of } = house([falling('link'), link, spare], {
    a: refuses('overloaded', 500),
    b: refuses('overloaded', 500),
    l: refuses('overloaded', 500),
    s: says('last'),
  });
  const { text, answer } = await ask();
  assert.deepEqual([text, of('l').length, answer.facts.attempts, answer.facts.original?.model], ['last', 2, 5, 'pair']);
});

test('a fallback that the key may not use is passed over, and its own fallback follows', async () => {
  const secret = model('secret', [target('x')], { fallback_target: 'spare' });
  const { ask, of } = house([falling('secret'), secret, spare], {
    a: refuses('overloaded', 500),
    b: refuses('overloaded', 500),
    x: says('secret'),
    s: says('allowed'),
  });
  assert.equal((await ask({ models: ['pair', 'spa*'] })).text, 'allowed');
  assert.equal(of('x').length, 0);
});

test('open breakers degrade too, and the original says so', async () => {
  const { ask } = house([model('m', [target('a')], { failure_threshold: 1, max_attempts: 1, fallback_target: 'spare' }), spare], {
    a: refuses('overloaded', 500),
    s: says('sorry'),
  });
  await ask();
  const { answer } = await ask();
  assert.deepEqual(
    [answer.facts.original?.status, answer.facts.original?.error?.code, answer.facts.original?.upstream, answer.facts.attempts],
    [503, 'upstream_unavailable', 'a', 1],
  );
});

test('an overflow goes to a fallback with a larger window only', async () => {
  const small = model('small', [target('a', { contextWindow: 1000 })], { fallback_target: 'big' });
  const upstreams = { a: refuses('context_overflow', 400), g: says('large enough') };
  assert.equal((await house([small, model('big', [target('g', { contextWindow: 9000 })])], upstreams).ask()).text, 'large enough');
  const { ask, tries } = house([small, model('big', [target('g', { contextWindow: 900 })])], upstreams);
  assert.equal((await ask()).error?.code, 'context_length_exceeded');
  assert.equal(tries.length, 1);
});

test('nothing left: 503 for overload, with what was tried over the whole chain', async () => {
  const { ask } = house([falling(), spare], { a: refuses('overloaded', 529), b: refuses('overloaded', 529), s: refuses('overloaded', 529) });
  const { error } = await ask();
  assert.deepEqual([error?.status, error?.code, error?.headers['x-should-retry']], [503, 'upstream_unavailable', 'false']);
  assert.match(error?.message ?? '', /a answered 529.*b answered 529.*s answered 529/);
});

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
  const began = performance.now();
  const { stream } = await run(exchange({ stream: true }));
  assert.ok(performance.now() - began < 250);
  await stream?.cancel();
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

// ---- time -----------------------------------------------------------------------------------------------------------

test('retries stay inside the deadline', async () => {
  const slow = later(60, refuses('overloaded', 500));
  const { ask } = house([model('m', [a, b], { max_attempts: 50, failure_threshold: 100 })], { a: slow, b: slow });
  const { error, ms } = await ask({ deadline: 150 });
  assert.ok([502, 503, 504].includes(error?.status ?? 0));
  assert.ok(ms < 400, `${ms} ms`);
});

test('a client that leaves during a backoff ends it at once', async () => {
  const { exchange, run, tries } = house([lone], { a: refuses('rate_limited', 429, 4000) });
  const leaving = exchange();
  const running = run(leaving);
  setTimeout(() => leaving.cancel(new HermesError('client_closed', 'gone')), 30);
  const began = performance.now();
  assert.equal((await running).error?.code, 'client_closed');
  assert.ok(performance.now() - began < 500);
  assert.equal(tries.length, 1);
});

// ---- affinity -------------------------------------------------------------------------------------------------------

test('affinity keeps a session on its upstream and spreads new ones by weight', async () => {
  const sticky = model('m', [target('a', { weight: 1 }), target('b', { weight: 1 })], { affinity: 'session' });
  const { ask, tries, room } = house([sticky], { a: says('a'), b: says('b') });
  const places: (string | undefined)[] = [];
  for (let i = 0; i < 10; i++) places.push((await ask({ session: `s${i}` })).text);
  assert.equal(places.filter((place) => place === 'a').length, 5);
  for (let round = 0; round < 3; round++) for (let i = 9; i >= 0; i--) assert.equal((await ask({ session: `s${i}` })).text, places[i]);
  assert.equal(tries.length, 40);
  assert.equal(room.preview(sticky, 's3', 'p').find(({ picked }) => picked)?.upstream, places[3]);
});

test('a session whose upstream fails moves, and stays where its prompt cache is now', async () => {
  const sticky = model('m', [target('a', { weight: 99 }), target('b', { weight: 1 })], { affinity: 'session' });
  const { ask } = house([sticky], { a: first(1, refuses('overloaded', 500), says('a')), b: says('b') });
  assert.equal((await ask({ session: 's' })).text, 'b');
  assert.equal((await ask({ session: 's' })).text, 'b');
  assert.equal((await ask({ session: 'other' })).text, 'a');
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

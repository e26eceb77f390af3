import assert from 'node:assert/strict';
import { test } from 'node:test';
import { first, house, model, refuses, says, target } from './failover-kit.ts';

const [a, b] = [target('a', { weight: 99 }), target('b')];
const pair = model('pair', [a, b]);
const spare = model('spare', [target('s')]);

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

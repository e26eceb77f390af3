import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { HermesError } from '../../src/contracts/errors.ts';
import { toFingerprint, toRecordKey } from '../../src/idempotency/record-key.ts';
import { deltas, type Instance, instance, type Model, sleep, type Told, until } from '../tools/tools-kit.ts';

let model: Model = () => 'well';
let here: Instance;
const id = (requestId: string, more: object = {}) => ({ ask: { requestId }, ...more });
const calls = (text: string): number => here.asked.filter(({ messages }) => messages[0]?.content === text).length;
const code = (told: Told): string | undefined => told.error?.code;

before(async () => {
  here = await instance({ model: (exchange, round) => model(exchange, round) });
});
after(() => here.close());

describe('a request id', () => {
  test('given again after the end gets the stored outcome, as JSON or as a stream, whatever the first was', async () => {
    model = () => 'well';
    for (const first of [true, false]) {
      const told = [];
      for (const stream of [first, true, false]) told.push(await here.tell(`replay ${first}`, id(`replay-${first}`, { stream })));
      assert.equal(calls(`replay ${first}`), 1);
      assert.deepEqual(
        told.map(({ text, facts }) => [text, facts.replayed ?? false]),
        [
          ['well', false],
          ['well', true],
          ['well', true],
        ],
      );
      assert.equal(told[0]?.completion?.id, told[2]?.completion?.id);
    }
    assert.ok(await here.metric('hermes_idempotent_replays_total 4'));
  });

  test('that a thousand callers use at once is one call, and every one of them gets the whole answer', async () => {
    model = () => deltas([{ role: 'assistant' }, ...Array.from({ length: 20 }, (_, i) => `w${i} `), '.stop'], 2);
    const told = await Promise.all(Array.from({ length: 1000 }, (_, i) => here.tell('thousand', id('thousand', { stream: i % 2 === 0 }))));
    assert.equal(calls('thousand'), 1);
    assert.equal(new Set(told.map(({ text }) => text)).size, 1);
    assert.equal(told[0]?.text, Array.from({ length: 20 }, (_, i) => `w${i} `).join(''));
    assert.ok(told.every(({ error, facts }) => error === undefined && !facts.replayed));
  });

  test('joined in mid-stream gives the joiner the stream from its beginning, and outlives its first caller', async () => {
    model = () => deltas(['one ', 'two ', 'three ', 'four', '.stop'], 20);
    const first = here.tell('join', id('join', { stream: true, leave: sleep(50) }));
    await sleep(30);
    const second = here.tell('join', id('join', { stream: true }));
    assert.equal(code(await first), 'client_closed');
    assert.equal((await second).text, 'one two three four');
    assert.equal(calls('join'), 1);
  });

  test('whose callers have all left is stopped at once and free again', async () => {
    let cancelled = 0;
    model = (exchange) => new Promise(() => exchange.onCancel(() => cancelled++));
    const left = await Promise.all([20, 40].map((ms) => here.tell('left', id('left', { leave: sleep(ms) }))));
    assert.deepEqual(left.map(code), ['client_closed', 'client_closed']);
    await until(() => cancelled === 1);
    model = () => 'anew';
    assert.equal((await here.tell('left', id('left'))).text, 'anew');
    assert.equal(calls('left'), 2);
  });
});

describe('under a request id', () => {
  test('another body is refused while the first runs and after it, and nothing is called', async () => {
    model = async () => {
      await sleep(30);
      return 'well';
    };
    const first = here.tell('mine', id('body'));
    assert.equal(code(await here.tell('other', id('body'))), 'idempotency_key_reused');
    await first;
    const again = await here.tell('mine', id('body', { body: { temperature: 1 } }));
    assert.equal([again.status, code(again)].join(), '422,idempotency_key_reused');
    assert.equal(calls('other'), 0);
  });

  test('what only says how to deliver it makes no other request', async () => {
    model = () => 'well';
    await here.tell('deliver', { ask: { requestId: 'deliver', timeoutMs: 1000 } });
    const again = await here.tell('deliver', {
      ask: { requestId: 'deliver', timeoutMs: 9000 },
      stream: true,
      body: { stream_options: { include_usage: true } },
    });
    assert.equal(again.facts.replayed, true);
    assert.equal(code(await here.tell('deliver', { ask: { requestId: 'deliver', sessionId: 's' } })), 'idempotency_key_reused');
  });

  test('an answer that failed, broke off or was second choice is made anew', async () => {
    const endings: Record<string, Model> = {
      failed: () => new HermesError('upstream_error', 'down'),
      broken: () => deltas(['some ', new HermesError('upstream_error', 'cut')]),
      degraded: () => ({
        body: {
          id: 'x',
          object: 'chat.completion',
          created: 1,
          model: 'm',
          choices: [{ index: 0, message: { role: 'assistant', content: 'second choice' }, finish_reason: 'stop' }],
        },
        facts: { degraded: true },
      }),
    };
    for (const [name, ending] of Object.entries(endings)) {
      model = ending;
      await here.tell(name, id(name, { stream: name === 'broken' }));
      model = () => 'well';
      const again = await here.tell(name, id(name));
      assert.deepEqual([again.text, again.facts.replayed, calls(name)], ['well', undefined, 2], name);
    }
  });

  test('a failure reaches joiners as the same failure', async () => {
    model = async () => {
      await sleep(20);
      return new HermesError('upstream_timeout', 'late');
    };
    const told = await Promise.all([1, 2, 3].map(() => here.tell('fail', id('fail'))));
    assert.deepEqual(told.map(code), Array(3).fill('upstream_timeout'));
    assert.equal(calls('fail'), 1);
  });

  test('everything belongs to the caller, however the id is worded', async () => {
    model = (exchange) => `for ${exchange.principal?.id}`;
    for (const requestId of ['plain', 'a:b', '__proto__', 'constructor', '', '\ud800', 'x'.repeat(5000)]) {
      for (const key of ['a', 'a:b', '__proto__']) assert.equal((await here.tell('whose', { ask: { requestId }, key })).text, `for ${key}`);
    }
    assert.notEqual(toRecordKey('a', 'b:c'), toRecordKey('a:b', 'c'));
  });

  test('what the first caller gets is kept apart from what joiners get', async () => {
    model = async () => {
      await sleep(20);
      return 'well';
    };
    const [first, second] = await Promise.all([here.tell('apart', id('apart')), here.tell('apart', id('apart'))]);
    first?.completion?.choices.splice(0);
    assert.equal(second?.completion?.choices.length, 1);
    assert.equal((await here.tell('apart', id('apart'))).text, 'well');
  });
});

test('without an id every request runs for itself', async () => {
  model = () => 'well';
  await Promise.all([here.tell('no id'), here.tell('no id')]);
  await here.tell('no id');
  assert.equal(calls('no id'), 3);
});

test('outcomes stay within their byte limit, and the least recently used go first', async () => {
  const small = await instance({ model: () => 'x'.repeat(3000), file: { idempotency: { max_bytes: 12_000 } } });
  for (const requestId of ['1', '2', '3', '4']) await small.tell(requestId, { ask: { requestId } });
  const replayed = [];
  for (const requestId of ['4', '1']) replayed.push((await small.tell(requestId, { ask: { requestId } })).facts.replayed ?? false);
  assert.deepEqual(replayed, [true, false]);
  await small.close();
});

test('a fingerprint does not depend on the order of members, and tells long integers apart', () => {
  const value = fc.object({ maxDepth: 3 });
  fc.assert(
    fc.property(value, (members) => {
      const reversed = Object.fromEntries(Object.entries(members).reverse());
      const messages = [{ role: 'user' as const, content: 'x' }];
      assert.equal(
        toFingerprint({ messages, ...members }, {}),
        toFingerprint({ ...reversed, messages: (members.messages as typeof messages) ?? messages }, {}),
      );
    }),
    { numRuns: 100 },
  );
});

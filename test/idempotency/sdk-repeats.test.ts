import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { HermesError } from '../../src/contracts/errors.ts';
import { deltas, type Instance, instance, type Model, sleep } from '../tools/tools-kit.ts';

let model: Model = () => 'well';
let here: Instance;
const calls = (text: string): number => here.asked.filter(({ messages }) => messages[0]?.content === text).length;
const repeat = (count: number) => ({ headers: { 'x-stainless-retry-count': String(count) } });
const gone = (): HermesError => new HermesError('client_closed', 'gone');

before(async () => {
  here = await instance({ model: (exchange, round) => model(exchange, round) });
});
after(() => here.close());

describe("an SDK's repeat without an id", () => {
  test('joins the request that it repeats while that runs, also as JSON instead of a stream', async () => {
    model = () => deltas(['slow ', 'answer', '.stop'], 20);
    const first = here.tell('runs', { ...repeat(0), stream: true });
    await sleep(10);
    const second = await here.tell('runs', repeat(1));
    assert.deepEqual([(await first).text, second.text, calls('runs')], ['slow answer', 'slow answer', 1]);
  });

  test('gets the answer that did not reach its client whole', async () => {
    model = () => 'lost';
    const first = await here.tell('lost', repeat(0));
    first.exchange.cancel(gone());
    const second = await here.tell('lost', repeat(1));
    assert.deepEqual([second.text, second.facts.replayed, calls('lost')], ['lost', true, 1]);
  });

  test('is a request of its own when the first answer arrived, was broken off, or belongs to another caller or session', async () => {
    model = () => 'well';
    await here.tell('arrived', repeat(0));
    await here.tell('arrived', repeat(1));
    assert.equal(calls('arrived'), 2);

    model = () => deltas(['a', 'b', 'c', '.stop'], 20);
    await here.tell('cut', { ...repeat(0), stream: true, leave: sleep(30) });
    model = () => 'anew';
    assert.equal((await here.tell('cut', repeat(1))).text, 'anew');

    for (const other of [{ key: 'other' }, { ask: { sessionId: 's2' } }, { body: { temperature: 1 } }]) {
      const first = await here.tell('whose', { ...repeat(0), ask: { sessionId: 's1' } });
      first.exchange.cancel(gone());
      const second = await here.tell('whose', { ...repeat(1), ask: { sessionId: 's1' }, ...other });
      assert.equal(second.facts.replayed, undefined, JSON.stringify(other));
    }
  });

  test('that does not announce itself as one is another request', async () => {
    model = () => 'well';
    const first = await here.tell('quiet', repeat(0));
    first.exchange.cancel(gone());
    for (const headers of [{}, { 'x-stainless-retry-count': '0' }, { 'x-stainless-retry-count': 'x' }]) await here.tell('quiet', { headers });
    assert.equal(calls('quiet'), 4);
  });
});

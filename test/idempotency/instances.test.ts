import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { HermesError } from '../../src/contracts/errors.ts';
import type { HotStore } from '../../src/contracts/hot-store.ts';
import { StoreUnavailable } from '../../src/contracts/hot-store.ts';
import { toRecordKey } from '../../src/idempotency/record-key.ts';
import { call, deltas, type Instance, type InstanceOptions, instance, openCold, sharedHot, sleep, toolbox, toolOf, until } from '../tools/tools-kit.ts';

const cold = await openCold();
const box = await toolbox({ refund: async () => ({ refunded: true }) });
const open: Instance[] = [];
after(async () => {
  await box.close();
  await Promise.all(open.map(({ close }) => close()));
});
async function pair(options: InstanceOptions & { hot: HotStore }): Promise<[Instance, Instance]> {
  const both: [Instance, Instance] = [await instance({ cold, ...options }), await instance({ cold, ...options })];
  open.push(...both);
  return both;
}
const id = (requestId: string, more: object = {}) => ({ ask: { requestId }, ...more });

describe('two instances on one hot store', () => {
  test('make one call of a request that both are asked, and replay it on either afterwards', async () => {
    const [a, b] = await pair({ hot: sharedHot(), model: () => deltas(['one ', 'two', '.stop'], 30) });
    const told = await Promise.all([a.tell('both', id('i1', { stream: true })), b.tell('both', id('i1'))]);
    assert.deepEqual(
      told.map(({ text }) => text),
      ['one two', 'one two'],
    );
    assert.equal(a.asked.length + b.asked.length, 1);
    assert.equal((await b.tell('both', id('i1', { stream: true }))).facts.replayed, true);
  });

  test('refuse another body under an id that runs on the other one', async () => {
    const [a, b] = await pair({ hot: sharedHot(), model: () => deltas(['one ', 'two', '.stop'], 30) });
    const first = a.tell('mine', id('i2', { stream: true }));
    await sleep(20);
    assert.equal((await b.tell('other', id('i2'))).error?.code, 'idempotency_key_reused');
    assert.equal((await first).text, 'one two');
    assert.equal((await b.tell('other', id('i2'))).error?.code, 'idempotency_key_reused');
  });

  test('let the second run it when the first fails', async () => {
    let nth = 0;
    const model = async () => {
      await sleep(40);
      return nth++ === 0 ? new HermesError('upstream_error', 'down') : 'second try';
    };
    const [a, b] = await pair({ hot: sharedHot(), model });
    const [one, two] = await Promise.all([a.tell('fails', id('i3')), sleep(10).then(() => b.tell('fails', id('i3')))]);
    assert.deepEqual([one.error?.code, two.text], ['upstream_error', 'second try']);
  });

  test('free an id whose holder crashed once its lease has ended', async () => {
    const hot = sharedHot();
    const lease = await hot.acquire(`idempotency:${toRecordKey('k', 'i4')}`, 100);
    const order: string[] = [];
    const [a] = await pair({
      hot,
      model: () => {
        order.push('asked');
        return 'well';
      },
    });
    const telling = a.tell('crashed', id('i4'));
    await sleep(150);
    order.push('freed');
    await lease?.release();
    assert.equal((await telling).text, 'well');
    assert.deepEqual(order, ['freed', 'asked']);
  });

  test('keep a run going whose callers left when somebody waits for it on the other', async () => {
    const [a, b] = await pair({ hot: sharedHot(), model: () => deltas(['one ', 'two ', 'three', '.stop'], 60) });
    const first = a.tell('left', id('i5', { stream: true, leave: sleep(100) }));
    await sleep(20);
    const second = b.tell('left', id('i5'));
    assert.equal((await first).error?.code, 'client_closed');
    assert.equal((await second).text, 'one two three');
    assert.equal(a.asked.length + b.asked.length, 1);
  });

  test("find an SDK's repeat of a request with side effects, and run its refund once", async () => {
    const [a, b] = await pair({
      hot: sharedHot(),
      tools: [toolOf(box, 'refund', { side_effects: true })],
      model: async (_, round) => {
        await sleep(60);
        return round === 0 ? [call('refund', { order_id: 'i6' })] : 'refunded';
      },
    });
    const sdk = (count: number, more: object = {}) => ({ rule: ['refund'], headers: { 'x-stainless-retry-count': String(count) }, ...more });
    const first = a.tell('sdk', sdk(0, { leave: sleep(30) }));
    await sleep(40);
    const second = await b.tell('sdk', sdk(1));
    assert.equal((await first).error?.code, 'client_closed');
    assert.deepEqual([second.text, box.ran('refund').length, a.asked.length + b.asked.length], ['refunded', 1, 2]);
  });
});

test('a store that falls away behind a lease keeps nobody waiting when it is back', async () => {
  const hot = sharedHot();
  const working = hot.get.bind(hot);
  let failures = 0;
  hot.get = async (key) => {
    if (key.startsWith('running:') || key.startsWith('waiting:') || failures > 0) return working(key);
    failures++;
    throw new StoreUnavailable('redis');
  };
  const [a] = await pair({ hot, model: () => 'well' });
  assert.equal((await a.tell('falls', id('i9'))).text, 'well');
  assert.equal(failures, 1);
  const lease = await hot.acquire(`idempotency:${toRecordKey('k', 'i9')}`, 100);
  assert.ok(lease, 'the name is free');
  await lease.release();
});

test('a long answer behind a side effect is read to its end when nobody is left to read it', async () => {
  const own = await openCold();
  let reads = 0;
  let ended = false;
  const answer = (): ReturnType<typeof deltas> => {
    const init = deltas([...Array.from({ length: 60 }, (_, at) => `piece ${at} `), '.stop'], 5);
    const { stream } = init;
    if (stream === undefined) return init;
    const read = async () => {
      const batch = await stream.read();
      reads++;
      ended ||= batch === null;
      return batch;
    };
    return { ...init, stream: { read, cancel: (reason) => stream.cancel(reason) } };
  };
  const a = await instance({
    cold: own,
    file: { idempotency: { max_bytes: 4096 } },
    tools: [toolOf(box, 'refund', { side_effects: true })],
    model: (_, round) => (round === 0 ? [call('refund', { order_id: 'i10' })] : answer()),
  });
  open.push(a);
  const told = await a.tell('long', { rule: ['refund'], ...id('i10', { stream: true, leave: until(() => reads > 20) }) });
  assert.equal(told.error?.code, 'client_closed');
  assert.equal(ended, false);
  await until(() => ended);
});

test('with the hot store away idempotency holds for this process', async () => {
  const away = () => Promise.reject(new StoreUnavailable('redis'));
  const hot = Object.assign(sharedHot(), { get: away, set: away, acquire: away, delete: away });
  const [a] = await pair({ hot, model: () => deltas(['one ', 'two', '.stop'], 10) });
  const told = await Promise.all([a.tell('away', id('i7')), a.tell('away', id('i7'))]);
  assert.deepEqual([...told.map(({ text }) => text), a.asked.length], ['one two', 'one two', 1]);
  assert.equal((await a.tell('away', id('i7'))).facts.replayed, true);
});

test('what ran a side effect is replayed after a restart, without any shared store', async () => {
  const options: InstanceOptions = {
    cold,
    tools: [toolOf(box, 'refund', { side_effects: true })],
    model: (_, round) => (round === 0 ? [call('refund', { order_id: 'i8' })] : 'done'),
  };
  const before = await instance(options);
  const made = await before.tell('restart', { rule: ['refund'] });
  assert.equal(made.text, 'done');
  const restarted = await instance(options);
  const requestId = made.facts.requestId ?? '';
  const again = await restarted.tell('restart', { rule: ['refund'], ask: { requestId } });
  assert.deepEqual([again.text, again.facts.replayed, restarted.asked.length], ['done', true, 0]);
  assert.equal((await restarted.tell('another', { rule: ['refund'], ask: { requestId } })).error?.code, 'idempotency_key_reused');
  await until(() => true);
});

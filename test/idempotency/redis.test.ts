import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import type { HotStore } from '../../src/contracts/hot-store.ts';
import { toRecordKey } from '../../src/idempotency/record-key.ts';
import createRedisStore from '../../src/stores/hot/redis.ts';
import { skipWithout, startRedis, until } from '../services.ts';
import { storeOptions } from '../stores/fixture.ts';
import { deltas, type Instance, instance, openCold } from '../tools/tools-kit.ts';

const needs = skipWithout('redis');

describe('two instances on a real Redis', needs, async () => {
  const open: Instance[] = [];
  const connect = async (url: string): Promise<HotStore> => {
    const store = createRedisStore(storeOptions(url));
    await until(() => store.healthy(), 'the store did not connect');
    return store;
  };
  after(() => Promise.all(open.map(({ close }) => close())));

  test('make one call of ten duplicates, replay it on both, and free the id of a crashed one within its lease', async () => {
    const redis = await startRedis();
    for (let i = 0; i < 2; i++)
      open.push(await instance({ hot: await connect(redis.url), cold: await openCold(), model: () => deltas(['one ', 'two', '.stop'], 30) }));
    const ask = { ask: { requestId: 'r' } };
    const told = await Promise.all(Array.from({ length: 10 }, (_, at) => open[at % 2]?.tell('ten', { ...ask, stream: at % 3 === 0 })));
    assert.deepEqual(new Set(told.map((one) => one?.text)), new Set(['one two']));
    const asked = () => open.reduce((sum, one) => sum + one.asked.length, 0);
    assert.equal(asked(), 1);
    for (const one of open) assert.equal((await one.tell('ten', ask)).facts.replayed, true);

    // What a crash leaves behind: a lease that nobody renews.
    const crashed = await connect(redis.url);
    await crashed.acquire(`idempotency:${toRecordKey('k', 'crashed')}`, 600);
    await crashed.close();
    assert.equal((await open[0]?.tell('crashed', { ask: { requestId: 'crashed' } }))?.text, 'one two');
    assert.equal(asked(), 2);
  });
});

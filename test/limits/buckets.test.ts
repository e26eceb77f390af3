import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { BucketDemand, HotStore } from '../../src/contracts/hot-store.ts';
import { createMemoryBuckets } from '../../src/limits/memory-buckets.ts';
import { createSharedBuckets } from '../../src/limits/shared-buckets.ts';
import { createBuckets } from '../../src/stores/hot/redis/buckets.ts';
import { createClient, parseRedisUrl } from '../../src/stores/hot/redis/connection.ts';
import createRedisStore from '../../src/stores/hot/redis.ts';
import { type RedisService, skipWithout, startRedis, startRedisCluster, until } from '../services.ts';
import { recordLog, storeOptions } from '../stores/fixture.ts';
import { startStopwatch } from '../time-kit.ts';
import { ReferenceBuckets, steps } from './reference-buckets.ts';

const DECISIONS = 100_000;
/** A network call each: all of them when `LIMITS_DECISIONS` says so. */
const SHARED_DECISIONS = Number(process.env.LIMITS_DECISIONS ?? 10_000);
const demand = (over: Partial<BucketDemand> = {}): BucketDemand => ({ key: 'k', amount: 1, capacity: 3, perMinute: 60, ...over });

describe('buckets in memory', () => {
  it(`agree with their definition in ${DECISIONS} decisions`, () => {
    const clock = { at: 0, now: () => clock.at };
    const buckets = createMemoryBuckets(clock);
    const reference = new ReferenceBuckets();
    let refusals = 0;
    for (const { at, demands, adjust } of steps(DECISIONS, 7, 400)) {
      clock.at = at;
      if (adjust !== undefined) {
        buckets.adjust(demands, adjust);
        reference.adjust(demands, adjust, at);
        continue;
      }
      const taken = buckets.take(demands);
      assert.ok(!(taken instanceof Promise));
      const expected = reference.take(demands, at);
      assert.equal(taken.refused?.index, expected.refused);
      assert.deepEqual(
        taken.states.map(({ remaining }) => Math.round(remaining * 60_000)),
        expected.levels,
      );
      if (taken.refused) refusals++;
    }
    assert.ok(refusals > DECISIONS / 20 && refusals < DECISIONS * 0.9, `${refusals} refusals: the run shows both`);
  });
  it('tell to the millisecond when a demand fits, and when the bucket is full', () => {
    const clock = { at: 1000, now: () => clock.at };
    const buckets = createMemoryBuckets(clock);
    const take = (over: Partial<BucketDemand> = {}) => {
      const taken = buckets.take([demand({ perMinute: 7, ...over })]);
      assert.ok(!(taken instanceof Promise));
      return taken;
    };
    take({ amount: 3 });
    const wait = take().refused?.retryAfterMs ?? assert.fail('it fits');
    clock.at += wait - 1;
    assert.deepEqual(take().refused, { index: 0, retryAfterMs: 1 });
    clock.at += 1;
    const taken = take();
    assert.equal(taken.refused, undefined);
    clock.at += (taken.states[0]?.resetMs ?? 0) - 1;
    assert.notEqual(take({ amount: 0 }).states[0]?.remaining, 3);
    clock.at += 1;
    assert.equal(take({ amount: 0 }).states[0]?.remaining, 3);
  });
  it('let more than a full bucket through when it is full, as a debt', () => {
    const clock = { at: 0, now: () => clock.at };
    const buckets = createMemoryBuckets(clock);
    const first = buckets.take([demand({ amount: 10 })]);
    assert.ok(!(first instanceof Promise) && first.refused === undefined);
    assert.equal(first.states[0]?.remaining, -7);
    const second = buckets.take([demand()]);
    assert.ok(!(second instanceof Promise));
    assert.equal(second.refused?.retryAfterMs, 8000);
  });
  it('forget the least recently used, which are full by then', () => {
    const clock = { at: 0, now: () => clock.at };
    const buckets = createMemoryBuckets(clock, 2);
    for (const key of ['a', 'b', 'c']) buckets.take([demand({ key, amount: 3 })]);
    const forgotten = buckets.take([demand({ key: 'a' })]);
    assert.ok(!(forgotten instanceof Promise) && forgotten.refused === undefined);
  });
});

const needs = skipWithout('redis');
async function openStore(url: string): Promise<HotStore & Required<Pick<HotStore, 'takeFromBuckets' | 'adjustBuckets'>>> {
  const store = createRedisStore(storeOptions(url, recordLog()));
  await until(() => store.healthy(), 'the store did not connect');
  const { takeFromBuckets, adjustBuckets } = store;
  assert.ok(takeFromBuckets && adjustBuckets);
  return { ...store, takeFromBuckets, adjustBuckets };
}

describe('buckets in Redis', needs, () => {
  let redis: RedisService;
  before(async () => {
    redis = await startRedis();
  });
  after(() => redis.stop());

  it(`agree with their definition in ${SHARED_DECISIONS} decisions`, async () => {
    // The scripts alone, without the store's limit on time: thousands are under way at once.
    const client = await createClient(parseRedisUrl(redis.url));
    await client.connect();
    const store = createBuckets('hermes:', (command) => command(client));
    await store.takeFromBuckets([demand({ key: 'loads the scripts' })]);
    await store.adjustBuckets([demand({ key: 'loads the scripts' })], 1);
    const reference = new ReferenceBuckets();
    // One connection answers in order: many may be under way.
    let running: Promise<void>[] = [];
    for (const { at, demands, adjust } of steps(SHARED_DECISIONS, 11, 400)) {
      if (adjust !== undefined) {
        reference.adjust(demands, adjust, at);
        running.push(store.adjustBuckets(demands, adjust, at));
      } else {
        const expected = reference.take(demands, at);
        running.push(store.takeFromBuckets(demands, at).then((taken) => assert.deepEqual(taken, expected)));
      }
      if (running.length >= 5000) {
        await Promise.all(running);
        running = [];
      }
    }
    await Promise.all(running);
    client.disconnect();
  });
  it('admit exactly the allowed number for two instances at full speed', async () => {
    const [a, b] = await Promise.all([openStore(redis.url), openStore(redis.url)]);
    const wanted = [demand({ key: 'race', capacity: 137, perMinute: 1 }), demand({ key: 'wide', capacity: 100_000, perMinute: 1 })];
    const asked = await Promise.all(Array.from({ length: 400 }, (_, index) => (index % 2 === 0 ? a : b).takeFromBuckets(wanted)));
    assert.equal(asked.filter(({ refused }) => refused === undefined).length, 137);
    const { levels } = await a.takeFromBuckets([demand({ key: 'wide', amount: 0, capacity: 100_000, perMinute: 1 })]);
    assert.equal(Math.round((levels[0] ?? 0) / 60_000), 100_000 - 137, 'who was refused by one has used up nothing of the other');
    await Promise.all([a.close(), b.close()]);
  });
  it('expire when they are full', async () => {
    const store = await openStore(redis.url);
    await store.takeFromBuckets([demand({ key: 'brief', capacity: 60, perMinute: 60 })]);
    const left = Number(/:(\d+)/.exec(await redis.command('PTTL', 'hermes:{limits}:brief'))?.[1]);
    assert.ok(left > 55_000 && left <= 61_000, `${left} ms`);
    await store.close();
  });
  it('give way to those of this process while Redis is away, and are used again', async () => {
    const own = await startRedis();
    const store = await openStore(own.url);
    const buckets = createSharedBuckets(store, createMemoryBuckets({ now: Date.now }));
    const taken = async (): Promise<boolean> => (await buckets.take([demand({ perMinute: 1 })])).refused === undefined;
    assert.deepEqual([await taken(), await taken(), await taken(), await taken()], [true, true, true, false]);
    own.freeze();
    const watch = startStopwatch();
    assert.equal(await taken(), true, 'a bucket of this process');
    assert.ok(watch.stop() < 2000, 'within the limit of a command');
    assert.deepEqual([await taken(), await taken(), await taken()], [true, true, false]);
    own.thaw();
    await until(() => store.healthy(), 'Redis is not used again');
    assert.equal(await taken(), false, 'the shared bucket still knows');
    buckets.adjust([demand({ perMinute: 1 })], 1);
    await until(taken, 'a settlement reaches the shared bucket');
    await store.close();
    await own.stop();
  });
});

describe('buckets in a Redis Cluster', needs, () => {
  it('are taken from together, wherever their keys would be', async () => {
    const cluster = await startRedisCluster();
    const store = await openStore(cluster.url);
    const wanted = Array.from({ length: 8 }, (_, index) => demand({ key: `user:${index}`, perMinute: 1 }));
    for (let i = 0; i < 3; i++) assert.equal((await store.takeFromBuckets(wanted)).refused, undefined);
    assert.equal((await store.takeFromBuckets(wanted)).refused, 0);
    await store.close();
    await cluster.stop();
  });
});

describe('a hot store without buckets', () => {
  it('leaves them to this process', () => {
    const local = createMemoryBuckets({ now: () => 0 });
    assert.equal(createSharedBuckets({ healthy: () => true }, local), local);
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type HotStore, StoreUnavailable } from '../../src/contracts/hot-store.ts';
import { parseRedisUrl } from '../../src/stores/hot/redis/connection.ts';
import createRedisStore from '../../src/stores/hot/redis.ts';
import { describeHotStore } from '../conformance/hot-store.ts';
import { freePort, type RedisService, skipWithout, startRedis, startRedisCluster, startRedisSentinel, until } from '../services.ts';
import { startStopwatch, waits } from '../time-kit.ts';
import { exchange, type RecordedLog, recordLog, storeOptions } from './fixture.ts';

const needs = skipWithout('redis');

async function openStore(url: string, log: RecordedLog = recordLog()): Promise<HotStore> {
  const store = createRedisStore(storeOptions(url, log));
  await until(() => store.healthy(), 'the store did not connect').catch(async (error: unknown) => {
    await store.close();
    throw error;
  });
  return store;
}

describeHotStore('redis, one server', async () => openStore((await startRedis()).url), needs);
describeHotStore('redis, a Cluster', async () => openStore((await startRedisCluster()).url), needs);
describeHotStore('redis, behind a Sentinel', async () => openStore((await startRedisSentinel(await startRedis())).url), needs);

const session = (version: number) => ({ version, system: [], messages: exchange(`turn ${version}`) });
/** How long it takes to be refused. */
async function timed(work: () => Promise<unknown>): Promise<number> {
  const watch = startStopwatch();
  await assert.rejects(work(), StoreUnavailable);
  return watch.stop();
}
let redis: RedisService;
before(async () => {
  if (needs.skip === false) redis = await startRedis();
});
after(() => redis?.stop());

describe('a Redis that goes away', needs, () => {
  it('has one readable key a session, with its time to live', async () => {
    const store = await openStore(redis.url);
    await store.putSession('shop:readable-42', session(1), 100);
    assert.match(await redis.command('KEYS', '*'), /\r\nhermes:session:\{shop:readable-42\}\r\n/);
    assert.match(
      await redis.command('LRANGE', 'hermes:session:{shop:readable-42}', '0', '-1'),
      /\{"role":"user","tokens":10,"message":\{"role":"user","content":"turn 1"\}\}\r\n/,
    );
    assert.match(await redis.command('TTL', 'hermes:session:{shop:readable-42}'), /:(100|99)\r\n/);
    await store.close();
  });
  it('takes what is no session under its name for none, and replaces it', async () => {
    const store = await openStore(redis.url);
    await redis.command('SET', 'hermes:session:{shop:odd}', 'a text');
    assert.equal(await store.getSession('shop:odd'), undefined);
    await store.appendTurn('shop:odd', 2, [], exchange('turn 2'), 50, 100);
    assert.equal(await store.getSession('shop:odd'), undefined);
    await redis.command('RPUSH', 'hermes:session:{shop:odd}', 'a text');
    assert.equal(await store.getSession('shop:odd'), undefined);
    await store.putSession('shop:odd', session(1), 100);
    assert.deepEqual(await store.getSession('shop:odd'), session(1));
    await store.close();
  });
  it('knows what another instance has added, removed and begun anew', async () => {
    const [one, two] = [await openStore(redis.url), await openStore(redis.url)];
    const both = async (expected: unknown): Promise<void> => {
      for (const store of [one, two, one]) assert.deepEqual(await store.getSession('shop:both'), expected);
    };
    await one.putSession('shop:both', session(1), 100);
    await both(session(1));
    await two.appendTurn('shop:both', 2, [], exchange('turn 2'), 50, 100);
    await both({ ...session(2), messages: [...session(1).messages, ...session(2).messages] });
    await one.deleteSession('shop:both');
    await both(undefined);
    const anew = { ...session(2), messages: exchange('another') };
    await two.putSession('shop:both', anew, 100);
    await both(anew);
    await Promise.all([one.close(), two.close()]);
  });
  it('answers within its limit when it is frozen, then at once, and is used again without what went stale', async () => {
    const log = recordLog();
    const store = await openStore(redis.url, log);
    await store.putSession('shop:stale', session(1), 100);
    await store.putSession('shop:fine', session(1), 100);
    redis.freeze();
    const began = performance.now();
    const first = await timed(() => store.getSession('shop:fine'));
    assert.ok(performance.now() - began > 250, 'nobody waited for it');
    assert.ok(first < 900, `the first command took ${first} ms`);
    assert.equal(store.healthy(), false);
    const refused = () => assert.rejects(store.appendTurn('shop:stale', 2, [], exchange('turn 2'), 50, 100), StoreUnavailable);
    assert.equal(await waits(refused), false);
    await assert.rejects(store.acquire('name', 5000), StoreUnavailable);
    await sleep(600);
    redis.thaw();
    await until(() => store.healthy(), 'it was not used again', 5000);
    assert.equal(await store.getSession('shop:stale'), undefined);
    assert.equal((await store.getSession('shop:fine'))?.version, 1);
    assert.deepEqual(
      log.lines.map(({ level }) => level),
      ['warn', 'info'],
      JSON.stringify(log.lines),
    );
    assert.equal(store.outages, 1);
    await store.close();
  });
  it('frees a lease that a frozen Redis gave when nobody waited any more', async () => {
    const store = await openStore(redis.url);
    redis.freeze();
    await assert.rejects(store.acquire('late', 60_000), StoreUnavailable);
    redis.thaw();
    await until(() => store.healthy(), 'it was not used again', 5000);
    const lease = await store.acquire('late', 1000);
    assert.ok(lease, 'the name is held by nobody, and taken');
    await lease.release();
    await store.close();
  });
  it('fails fast while it is killed, and serves nothing old when it comes back with what it knew', async () => {
    const log = recordLog();
    const store = await openStore(redis.url, log);
    await store.putSession('shop:old', session(1), 100);
    await store.set('value', 'x', 60_000);
    await redis.kill();
    await until(() => !store.healthy(), 'nobody noticed');
    await Promise.all(Array.from({ length: 50 }, () => assert.rejects(store.appendTurn('shop:old', 2, [], exchange('turn 2'), 50, 100), StoreUnavailable)));
    await assert.rejects(store.deleteSession('shop:gone'), StoreUnavailable);
    await sleep(300);
    await redis.start();
    await until(() => store.healthy(), 'it was not used again', 5000);
    assert.equal(await store.getSession('shop:old'), undefined);
    assert.equal(await store.get('value'), 'x');
    assert.equal(log.lines.length, 2, JSON.stringify(log.lines));
    assert.doesNotMatch(JSON.stringify(log.lines), /127\.0\.0\.1/);
    await store.close();
  });
});

describe('a Redis that is not there yet', needs, () => {
  it('is a warning when it is away at the start, and is used when it comes', async () => {
    const late = await startRedis();
    await late.kill();
    const log = recordLog();
    const store = createRedisStore(storeOptions(late.url, log));
    assert.ok((await timed(() => store.getSession('shop:x'))) < 900);
    await late.start();
    await until(() => store.healthy(), 'it was not used', 5000);
    assert.deepEqual(
      log.lines.map(({ level }) => level),
      ['warn', 'info'],
    );
    await store.close();
    await late.stop();
  });
  it('is a warning when it accepts at the start and never answers', async () => {
    redis.freeze();
    const log = recordLog();
    const store = createRedisStore(storeOptions(redis.url, log));
    assert.ok((await timed(() => store.getSession('shop:x'))) < 900);
    redis.thaw();
    await until(() => store.healthy(), 'it was not used', 8000);
    assert.deepEqual(
      log.lines.map(({ level }) => level),
      ['warn', 'info'],
    );
    await store.close();
  });
  it('holds no process that closes while it is away', async () => {
    const store = createRedisStore(storeOptions(`redis://127.0.0.1:${await freePort()}`));
    await store.close();
    await assert.rejects(store.getSession('shop:x'), StoreUnavailable);
  });
});

describe('a Redis address', () => {
  it('is one server, with its database and credentials', () => {
    assert.deepEqual(parseRedisUrl('redis://me:p%40ss@example.test:7000/3'), {
      kind: 'single',
      options: { username: 'me', password: 'p@ss', host: 'example.test', port: 7000, db: 3 },
    });
    assert.deepEqual(parseRedisUrl('redis://example.test'), { kind: 'single', options: { host: 'example.test', port: 6379, db: 0 } });
    assert.deepEqual(parseRedisUrl('rediss://:secret@[::1]:7000').options, {
      password: 'secret',
      tls: {},
      host: '::1',
      port: 7000,
      db: 0,
    });
  });
  it('is a Cluster when several nodes are joined by commas', () => {
    for (const url of ['redis://:pw@a:1,b:2', 'redis://:pw@a:1,redis://:pw@b:2']) {
      const address = parseRedisUrl(url);
      assert.equal(address.kind, 'cluster');
      assert.deepEqual(address, {
        kind: 'cluster',
        nodes: [
          { host: 'a', port: 1 },
          { host: 'b', port: 2 },
        ],
        options: { password: 'pw' },
      });
    }
  });
  it('names sentinels and their master', () => {
    const options = {
      sentinels: [
        { host: 'a', port: 26379 },
        { host: 'b', port: 2 },
      ],
      name: 'prod',
      db: 0,
    };
    assert.deepEqual(parseRedisUrl('redis+sentinel://a,b:2/prod'), { kind: 'sentinel', options });
  });
  it('is refused without being repeated when it is none', () => {
    for (const url of ['http://secret', 'redis://', 'secret'])
      assert.throws(
        () => parseRedisUrl(url),
        (error: Error) => !error.message.includes('secret'),
      );
  });
});

import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import type { ColdStore } from '../../src/contracts/cold-store.ts';
import { type HotStore, StoreUnavailable } from '../../src/contracts/hot-store.ts';
import createSqlJs from '../../src/stores/cold/sqljs.ts';
import createMemory from '../../src/stores/hot/memory.ts';
import { exchange, storeOptions, turn } from '../stores/fixture.ts';
import { answer, house, says, sharedContext, story } from './session-kit.ts';

interface Switch {
  away: boolean;
  outages: number;
  calls: Record<string, number>;
}
/** The store, or `StoreUnavailable` from every method while it is away. */
function switchable<Store extends HotStore | ColdStore>(store: Store, over: Partial<Record<string, unknown>> = {}): { store: Store; state: Switch } {
  const state: Switch = { away: false, outages: 0, calls: {} };
  const proxy = new Proxy(store, {
    get(target, name, receiver) {
      if (name === 'outages') return state.outages;
      if (typeof name === 'string' && name in over) return over[name];
      const value: unknown = Reflect.get(target, name, receiver);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        state.calls[String(name)] = (state.calls[String(name)] ?? 0) + 1;
        if (state.away && name !== 'close') return Promise.reject(new StoreUnavailable('switched'));
        return value.apply(target, args);
      };
    },
  });
  return { store: proxy, state };
}
const sharedHot = () => switchable(createMemory(storeOptions('')), { shared: true, name: 'redis' });
async function coldStore(over = {}) {
  const made = createSqlJs(storeOptions('sqlite::memory:'));
  await made.open();
  return switchable(made, over);
}

describe('a hot store that is away', () => {
  after(() => sharedContext.close());

  it('costs no history, and is used again without serving what is old', async () => {
    const hot = sharedHot();
    const h = await house({ hot: hot.store });
    await h.say('s', 'one');
    hot.state.away = true;
    assert.deepEqual((await h.say('s', 'two')).seen, story('one', 'two'));
    hot.state.away = false;
    hot.state.outages += 1;
    assert.deepEqual((await h.say('s', 'three')).seen, story('one', 'two', 'three'));
    const reads = hot.state.calls.getSession;
    assert.deepEqual((await h.say('s', 'four')).seen, story('one', 'two', 'three', 'four'));
    assert.ok((hot.state.calls.getSession ?? 0) > (reads ?? 0));
    assert.ok((await h.metric('hermes_session_reads_total', 'tier="hot"')) >= 1);
    await h.close();
  });

  it('is checked against cold after an outage that only another instance wrote in', async () => {
    const hot = sharedHot();
    const cold = await coldStore();
    const [a, b] = [await house({ hot: hot.store, cold: cold.store }), await house({ hot: createMemory(storeOptions('')), cold: cold.store })];
    await a.say('s', 'one');
    // b's writes never reach what a reads: as when Redis came back with an old state.
    await b.say('s', 'two');
    hot.state.outages += 1;
    assert.deepEqual((await a.say('s', 'three')).seen, story('one', 'two', 'three'));
  });

  it('is not trusted with what an instance wrote that was cut off from it alone', async () => {
    const memory = createMemory(storeOptions(''));
    const [hotOfA, hotOfB] = [switchable(memory, { shared: true, name: 'redis' }), switchable(memory, { shared: true, name: 'redis' })];
    const cold = await coldStore({ name: 'postgres' });
    const [a, b] = [await house({ hot: hotOfA.store, cold: cold.store }), await house({ hot: hotOfB.store, cold: cold.store })];
    await a.say('s', 'one');
    await b.say('s', 'two');
    hotOfA.state.away = true;
    await a.say('s', 'three');
    assert.deepEqual((await b.say('s', 'four')).seen, story('one', 'two', 'three', 'four'), 'hot never heard of the third');
    assert.deepEqual((await a.say('s', 'five')).seen, story('one', 'two', 'three', 'four', 'five'));
  });

  it('is trusted without asking cold while it has not been away', async () => {
    const hot = sharedHot();
    const cold = await coldStore();
    const h = await house({ hot: hot.store, cold: cold.store });
    await h.say('s', 'one');
    const before = { ...cold.state.calls };
    await h.say('s', 'two');
    assert.equal(cold.state.calls.readSession, before.readSession);
    assert.equal(cold.state.calls.sessionVersion, before.sessionVersion);
  });
});

describe('memory before a cold store that instances share', () => {
  it('sees what another instance has stored', async () => {
    const cold = await coldStore({ name: 'postgres' });
    const [a, b] = [await house({ cold: cold.store }), await house({ cold: cold.store })];
    const texts = Array.from({ length: 6 }, (_, index) => `t${index}`);
    for (const [index, text] of texts.entries()) {
      const told = await (index % 2 ? b : a).say('s', text);
      assert.deepEqual(told.seen, story(...texts.slice(0, index + 1)));
    }
    assert.equal(await a.room.forget('shop', 's'), true);
    assert.deepEqual((await b.say('s', 'anew')).seen, ['u:anew'], 'a deleted session is deleted everywhere');
    assert.deepEqual((await b.say('s', 'more')).seen, story('anew', 'more'));
    await sharedContext.close();
  });

  it('loses no turn when two commit on the same version', async () => {
    const cold = await coldStore({ name: 'postgres' });
    const [a, b] = [await house({ cold: cold.store }), await house({ cold: cold.store })];
    await a.say('s', 'one');
    const model = (name: string) => async () => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return says(answer(`from ${name}`));
    };
    await Promise.all([a.say('s', 'x', { model: model('a') }), b.say('s', 'y', { model: model('b') })]);
    const seen = (await a.say('s', 'last')).seen ?? [];
    assert.equal(seen.length, 7);
    for (const [text, reply] of [
      ['x', 'a'],
      ['y', 'b'],
    ])
      assert.equal(seen[seen.indexOf(`u:${text}`) + 1], `a:from ${reply}`);
    await sharedContext.close();
  });
});

describe('a cold store that is away', () => {
  it('under `strict` is a clear 503, and nothing is half stored', async () => {
    const cold = await coldStore();
    const h = await house({ cold: cold.store });
    await h.say('s', 'one');
    cold.state.away = true;
    for (const stream of [false, true]) {
      const told = await h.say('s', 'two', { stream });
      assert.equal(told.seen === undefined, stream, 'once it is known to be away no model is asked');
      assert.equal(told.error?.code, 'session_store_unavailable');
      assert.equal(told.error?.status, 503);
    }
    const unknown = await h.say('never seen', 'x');
    assert.equal(unknown.status, 503);
    assert.equal(unknown.seen, undefined, 'no model is asked for a turn that could not be read');
    assert.equal((await h.say(undefined, 'stateless')).status, 200);
    cold.state.away = false;
    assert.deepEqual((await h.say('s', 'three')).seen, story('one', 'three'));
    await sharedContext.close();
  });

  it('under `relaxed` is answered, said, queued and made good in order', async () => {
    const cold = await coldStore();
    const h = await house({ cold: cold.store, session: { durability: 'relaxed' } });
    await h.say('s', 'one');
    cold.state.away = true;
    assert.deepEqual((await h.say('s', 'two')).seen, story('one', 'two'));
    assert.deepEqual((await h.say('s', 'three')).seen, story('one', 'two', 'three'));
    await h.say('new', 'a');
    assert.deepEqual((await h.say('new', 'b')).seen, story('a', 'b'));
    await h.hot.deleteSession('shop:new');
    assert.deepEqual((await h.say('new', 'c')).seen, story('a', 'b', 'c'), 'what waits is part of the history');
    assert.ok(h.log.lines.some(({ level, message }) => level === 'warn' && /wait in memory/.test(message)));
    cold.state.away = false;
    await h.room.close();
    assert.deepEqual(await h.stored('s'), [...story('one', 'two', 'three'), 'a:re: three']);
    assert.deepEqual(await h.stored('new'), [...story('a', 'b', 'c'), 'a:re: c']);
    assert.deepEqual((await h.say('s', 'four')).seen, story('one', 'two', 'three', 'four'));
    await sharedContext.close();
  });
});

describe('a session of 5,000 messages', () => {
  it('is read from cold with one query, and is hot afterwards as any other', async () => {
    const cold = await coldStore();
    const hot = sharedHot();
    for (let version = 0; version < 10; version++)
      await cold.store.appendTurn(turn('long', version, '', { messages: Array.from({ length: 250 }, (_, i) => exchange(`${version}.${i}`)).flat() }));
    const h = await house({ hot: hot.store, cold: cold.store });
    const before = { ...cold.state.calls };
    const asked = () => Object.entries(cold.state.calls).flatMap(([name, calls]) => (calls === before[name] ? [] : [`${name} ${calls - (before[name] ?? 0)}`]));
    const told = await h.say('long', 'next');
    assert.equal(told.seen?.length, 51);
    assert.deepEqual(asked(), ['appendTurn 1', 'readSession 1']);
    await h.say('long', 'and next');
    assert.deepEqual(asked(), ['appendTurn 2', 'readSession 1']);
    assert.equal((await hot.store.getSession('shop:long'))?.messages.length, 50);
    await h.close();
  });
});

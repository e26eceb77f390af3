import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import type { StoredMessage } from '../../src/contracts/cold-store.ts';
import type { HotStore } from '../../src/contracts/hot-store.ts';
import type { Role } from '../../src/wire/chat.ts';
import { windowStart } from '../../src/wire/history-window.ts';
import { exchange, stored, texts } from '../stores/fixture.ts';

/** Names that would meet, escape or break a key that is put together carelessly. */
export const AWKWARD = ['a:b', 'a', 'b:a', '__proto__', 'constructor', `it's "quoted"`, '{a}b', '订单 \u{1f4e6}', 'a*?[b]', 'x\\y', ' ', 'é', 'e\u0301'];

let next = 0;
function fresh(): string {
  next += 1;
  return `shop:${process.pid}-${next}`;
}

/** What every hot engine promises. `open` gives a store on an engine that this suite has for itself. */
export function describeHotStore(name: string, open: () => Promise<HotStore>, options: { skip: string | false } = { skip: false }): void {
  describe(`the hot store ${name}`, options, () => {
    let store: HotStore;
    before(async () => {
      store = await open();
    });
    after(() => store.close());

    sessions(() => store);
    values(() => store);
    leases(() => store);
  });
}

function sessions(get: () => HotStore): void {
  it('knows no session that was never put', async () => {
    assert.equal(await get().getSession(fresh()), undefined);
  });
  it('gives a session back as it was put, whatever its messages hold', async () => {
    const key = fresh();
    const messages: StoredMessage[] = [
      stored('user', 'line\nbreak, "quotes", \\, \u0000, \ud800, \u2028, 订单'),
      stored('assistant', null, { tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{"list":[],"big":12345678901234567}' } }] }),
      stored('tool', '[]', { tool_call_id: 'c1', empty: [], nothing: {}, nested: [[], [{}]], number: 0.1, big: 1e21 }),
      { ...stored('assistant', ''), partial: true, degraded: true },
    ];
    const session = { version: 3, system: [stored('system', 'be kind'), stored('developer', ']}')], messages };
    await get().putSession(key, session, 60);
    assert.deepEqual(await get().getSession(key), session);
    await get().appendTurn(key, 4, session.system, exchange(']}'), 50, 60);
    assert.deepEqual((await get().getSession(key))?.messages, [...messages, ...exchange(']}')]);
  });
  it('appends the turn that follows, with its system prompt', async () => {
    const key = fresh();
    await get().putSession(key, { version: 1, system: [], messages: exchange('one') }, 60);
    await get().appendTurn(key, 2, [stored('system', 'new')], exchange('two'), 50, 60);
    const session = await get().getSession(key);
    assert.equal(session?.version, 2);
    assert.deepEqual(session?.system, [stored('system', 'new')]);
    assert.deepEqual(texts(session?.messages ?? []), ['one', 're: one', 'two', 're: two']);
  });
  it('begins a session with its first turn', async () => {
    const key = fresh();
    await get().appendTurn(key, 1, [], exchange('one'), 50, 60);
    assert.equal((await get().getSession(key))?.version, 1);
  });
  it('drops a state that has missed a turn, or is ahead, rather than append to it', async () => {
    for (const version of [4, 2, 1]) {
      const key = fresh();
      await get().putSession(key, { version: 2, system: [], messages: exchange('one') }, 60);
      await get().appendTurn(key, version, [], exchange('late'), 50, 60);
      assert.equal(await get().getSession(key), undefined, `appending version ${version} to 2`);
    }
    const key = fresh();
    await get().appendTurn(key, 2, [], exchange('late'), 50, 60);
    assert.equal(await get().getSession(key), undefined);
  });
  it('never replaces a newer state by an older one', async () => {
    const key = fresh();
    await get().putSession(key, { version: 5, system: [], messages: exchange('new') }, 60);
    await get().putSession(key, { version: 4, system: [], messages: exchange('old') }, 60);
    assert.equal((await get().getSession(key))?.version, 5);
  });
  it('lets exactly one of many appends of one version through', async () => {
    const key = fresh();
    await get().putSession(key, { version: 1, system: [], messages: [] }, 60);
    await Promise.all(Array.from({ length: 20 }, (_, i) => get().appendTurn(key, 2, [], exchange(`n${i}`), 50, 60)));
    const session = await get().getSession(key);
    assert.ok(session === undefined || session.messages.length === 2, 'two turns of one version in one history');
  });
  it('cuts to the newest messages as the window is cut everywhere', async () => {
    const roles = fc.array(fc.constantFrom<Role>('user', 'assistant', 'tool'), { minLength: 1, maxLength: 6 });
    const property = fc.asyncProperty(fc.array(roles, { minLength: 1, maxLength: 5 }), fc.integer({ min: 1, max: 8 }), async (turns, max) => {
      const key = fresh();
      let expected: StoredMessage[] = [];
      for (const [index, turn] of turns.entries()) {
        const messages = turn.map((role, i) => stored(role, `${index}.${i}`));
        await get().appendTurn(key, index + 1, [], messages, max, 60);
        expected = [...expected, ...messages];
        expected = expected.slice(windowStart(expected, max));
      }
      assert.deepEqual(texts((await get().getSession(key))?.messages ?? []), texts(expected));
    });
    await fc.assert(property, { numRuns: 40 });
  });
  it('forgets a session after its time, counted from its newest turn', async () => {
    const [idle, busy] = [fresh(), fresh()];
    for (const key of [idle, busy]) await get().putSession(key, { version: 1, system: [], messages: [] }, 2);
    await sleep(1300);
    await get().appendTurn(busy, 2, [], exchange('still here'), 50, 2);
    await sleep(1000);
    assert.equal(await get().getSession(idle), undefined);
    assert.equal((await get().getSession(busy))?.version, 2);
  });
  it('deletes a session', async () => {
    const key = fresh();
    await get().putSession(key, { version: 1, system: [], messages: [] }, 60);
    await get().deleteSession(key);
    assert.equal(await get().getSession(key), undefined);
  });
  it('takes no two names for one', async () => {
    const version = (index: number): number => index + 1;
    for (const [i, name] of AWKWARD.entries()) await get().putSession(name, { version: version(i), system: [], messages: [] }, 60);
    for (const [i, name] of AWKWARD.entries()) assert.equal((await get().getSession(name))?.version, version(i), name);
    for (const name of AWKWARD) assert.equal(await get().get(name), undefined, `a session is no value: ${name}`);
  });
}

function values(get: () => HotStore): void {
  it('keeps a value, empty ones and awkward ones too', async () => {
    for (const value of ['', 'x', '"', 'ünïcode \u{1f600}', 'null', '\u0000', 'a'.repeat(100_000)]) {
      const key = fresh();
      assert.equal(await get().set(key, value, 60_000), true);
      assert.equal(await get().get(key), value);
    }
    for (const [i, name] of AWKWARD.entries()) await get().set(name, String(i), 60_000);
    for (const [i, name] of AWKWARD.entries()) assert.equal(await get().get(name), String(i), name);
  });
  it('sets a value once when it must be absent, also for twenty at a time', async () => {
    const key = fresh();
    const won = await Promise.all(Array.from({ length: 20 }, (_, i) => get().set(key, String(i), 60_000, true)));
    assert.equal(won.filter(Boolean).length, 1);
    assert.equal(await get().get(key), String(won.indexOf(true)));
    assert.equal(await get().set(key, 'other', 60_000), true);
    assert.equal(await get().get(key), 'other');
  });
  it('forgets a value after its time, and deletes one before it', async () => {
    const [short, deleted] = [fresh(), fresh()];
    await get().set(short, 'x', 80);
    await get().set(deleted, 'x', 60_000);
    await get().delete(deleted);
    await sleep(120);
    assert.equal(await get().get(short), undefined);
    assert.equal(await get().get(deleted), undefined);
    assert.equal(await get().set(short, 'y', 60_000, true), true);
  });
}

function leases(get: () => HotStore): void {
  it('gives a name to one holder at a time, each with a greater token', async () => {
    const name = fresh();
    const first = await get().acquire(name, 5000);
    assert.ok(first);
    assert.equal(await get().acquire(name, 5000), undefined);
    await first.release();
    await first.release();
    const second = await get().acquire(name, 5000);
    assert.ok(second && second.token > first.token);
    await first.release();
    assert.equal(await get().acquire(name, 5000), undefined, 'a former holder freed the name of the next');
    await second.release();
  });
  it('gives a contested name to exactly one', async () => {
    const name = fresh();
    const won = (await Promise.all(Array.from({ length: 20 }, () => get().acquire(name, 5000)))).filter((lease) => lease !== undefined);
    assert.equal(won.length, 1);
    await won[0]?.release();
  });
  it('keeps a lease beyond its time while its holder lives', async () => {
    const name = fresh();
    const lease = await get().acquire(name, 600);
    await sleep(1500);
    assert.equal(await get().acquire(name, 150), undefined);
    await lease?.release();
    const next = await get().acquire(name, 150);
    assert.ok(next);
    await next.release();
  });
}

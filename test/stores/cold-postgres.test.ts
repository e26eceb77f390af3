import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type ColdStore, VersionConflict } from '../../src/contracts/cold-store.ts';
import { StoreUnavailable } from '../../src/contracts/hot-store.ts';
import createPostgresStore from '../../src/stores/cold/postgres.ts';
import { READ_SESSION } from '../../src/stores/cold/sql/statements.ts';
import { describeColdStore } from '../conformance/cold-store.ts';
import { type PostgresService, skipWithout, startPostgres, until } from '../services.ts';
import { startStopwatch, waits } from '../time-kit.ts';
import { type RecordedLog, recordLog, storeOptions, turn } from './fixture.ts';

const needs = skipWithout('postgres');
let server: PostgresService;
before(async () => {
  if (needs.skip === false) server = await startPostgres();
});
after(() => server?.stop());

async function opened(url: string, log: RecordedLog = recordLog()): Promise<ColdStore> {
  const store = createPostgresStore(storeOptions(url, log));
  await store.open();
  return store;
}

describeColdStore('postgres', async () => opened(await server.createDatabase()), needs);

describe('a PostgreSQL', needs, () => {
  it('is migrated once by instances that start at the same moment', async () => {
    const url = await server.createDatabase();
    const stores = await Promise.all([opened(url), opened(url), opened(url)]);
    assert.deepEqual(await Promise.all(stores.map((store) => store.healthy())), [true, true, true]);
    await stores[0]?.appendTurn(turn('s', 0, 'x'));
    await assert.rejects(stores[1]?.appendTurn(turn('s', 0, 'y')) ?? Promise.resolve(), VersionConflict);
    await Promise.all(stores.map((store) => store.close()));
  });
  it('of a newer hermes, or of another owner, refuses the start in words', async () => {
    const url = await server.createDatabase();
    const name = new URL(url).pathname.slice(1);
    await (await opened(url)).close();
    await server.sql('INSERT INTO hermes_schema (version) VALUES (999)', name);
    await assert.rejects(opened(url), /newer hermes/);
    await assert.rejects(opened(url.replace(name, 'nowhere')), /nowhere/);
  });
  it('restarted between two turns is not noticed', async () => {
    const log = recordLog();
    const store = await opened(await server.createDatabase(), log);
    await store.appendTurn(turn('s', 0, 'x'));
    await server.kill();
    await server.start();
    await until(async () => (await store.appendTurn(turn('s', 1, 'y'))) === 2, 'the turn was not stored', 5000);
    assert.equal((await store.readSession('shop', 's', 10))?.total, 4);
    await store.close();
  });
  it('that is killed is said to be away at once, in one line, and used again', async () => {
    const log = recordLog();
    const store = await opened(await server.createDatabase(), log);
    await store.appendTurn(turn('s', 0, 'x'));
    await server.kill();
    const watch = startStopwatch();
    const refused = () => assert.rejects(store.appendTurn(turn('s', 1, 'y')), StoreUnavailable);
    await refused();
    assert.ok(watch.stop() < 1500, `${watch.ms()} ms`);
    for (let i = 0; i < 9; i++) assert.equal(await waits(refused), false);
    assert.equal(await store.healthy(), false);
    await server.start();
    await until(() => store.healthy(), 'it was not used again', 5000);
    assert.equal(await store.appendTurn(turn('s', 1, 'y')), 2);
    assert.deepEqual(
      log.lines.map(({ level }) => level),
      ['warn', 'info'],
      JSON.stringify(log.lines),
    );
    assert.doesNotMatch(JSON.stringify(log.lines), /127\.0\.0\.1/);
    await store.close();
  });
  it('that is killed under queries fails these, and nothing else', async () => {
    const store = await opened(await server.createDatabase());
    await store.appendTurn(turn('s', 0, 'x'));
    const waiting = Promise.allSettled(Array.from({ length: 5 }, (_, i) => store.appendTurn(turn(`s${i}`, 0, 'y'.repeat(200_000)))));
    await server.kill();
    await waiting;
    await server.start();
    await until(() => store.healthy(), 'it was not used again', 5000);
    assert.equal((await store.readSession('shop', 's', 10))?.total, 2);
    await store.close();
  });
  it('that is frozen is away within its limit, and doubles nothing when it thaws', async () => {
    const store = await opened(await server.createDatabase());
    await store.appendTurn(turn('s', 0, 'x'));
    const late = turn('s', 1, 'late');
    server.freeze();
    // A query may take two seconds, all that belongs to a turn fifteen.
    const watch = startStopwatch();
    await assert.rejects(store.appendTurn(late), StoreUnavailable);
    assert.ok(watch.stop() < 7500, `${watch.ms()} ms`);
    assert.equal(await waits(() => assert.rejects(store.readSession('shop', 's', 10), StoreUnavailable)), false);
    server.thaw();
    await until(() => store.healthy(), 'it was not used again', 8000);
    assert.equal(await store.appendTurn(late), 2);
    assert.equal((await store.readSession('shop', 's', 10))?.total, 4);
    await store.close();
  });
  it('that is away at the start is waited for', async () => {
    const url = await server.createDatabase();
    await server.kill();
    const store = await opened(url);
    await assert.rejects(store.sessionVersion('shop', 's'), StoreUnavailable);
    await server.start();
    await until(() => store.healthy(), 'it was not used', 5000);
    assert.equal(await store.appendTurn(turn('s', 0, 'x')), 1);
    await store.close();
  });
  it("reads five thousand messages' newest with one query, by index", async () => {
    const url = await server.createDatabase();
    const store = await opened(url);
    for (let i = 0; i < 10; i++)
      await store.appendTurn(turn('long', i, 'x', { messages: Array.from({ length: 500 }, () => turn('', 0, 'm').messages[0] ?? assert.fail()) }));
    assert.equal((await store.readSession('shop', 'long', 50))?.messages.length, 50);
    const plan = await server.sql(
      `PREPARE reading AS ${READ_SESSION}; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) EXECUTE reading ('shop', 'long', 50)`,
      new URL(url).pathname.slice(1),
    );
    assert.match(plan, /Index Scan.* on messages/);
    assert.doesNotMatch(plan, /Seq Scan|Sort/);
    const rows = [...plan.matchAll(/actual rows=(\d+)/g)].map(([, count]) => Number(count));
    assert.equal(Math.max(...rows), 51, plan);
    await store.close();
  });
});

describe('the books in PostgreSQL', needs, () => {
  it('are found by an index for one session', async () => {
    const url = await server.createDatabase();
    await (await opened(url)).close();
    const plan = await server.sql(
      "SET enable_seqscan = off; EXPLAIN SELECT SUM(calls) FROM ledger WHERE hour >= '2026' AND hour < '2027' AND project = 'shop' AND session = 's' AND session <> ''",
      new URL(url).pathname.slice(1),
    );
    assert.match(plan, /ledger_by_session/);
  });
});

import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import initSqlJs from 'sql.js';
import type { ColdStore, LedgerRow } from '../../src/contracts/cold-store.ts';
import createPostgresStore from '../../src/stores/cold/postgres.ts';
import { type Dialect, migrations } from '../../src/stores/cold/sql/schema.ts';
import { LEDGER_KEYS } from '../../src/stores/cold/sql/statements.ts';
import createSqljsStore from '../../src/stores/cold/sqljs.ts';
import { type PostgresService, skipWithout, startPostgres, temporaryFolder } from '../services.ts';
import { recordLog, storeOptions, turn } from './fixture.ts';

/** The first version that anybody may have data of: everything that follows must come over it. */
const OLDEST = 3;
const HOUR = '2026-11-30T17:00Z';
const OLD_ROW = `INSERT INTO ledger (${LEDGER_KEYS.map((key) => `"${key}"`).join()}, calls, failed_calls, estimated_calls, input_tokens, cached_tokens, output_tokens, reasoning_tokens, cost_nano_usd)
  VALUES ('${HOUR}', 'shop', 'support', 'u1', 's1', 'k1', 'r1', 'm1', 'up1', 0, 1, 0, 0, 10, 1, 5, 2, 700)`;
const ROW: LedgerRow = {
  ...{ hour: HOUR, project: 'shop', service: 'support', user: 'u1', session: 's1', key: 'k1', route: 'r1', model: 'm1', upstream: 'up1', shadow: false },
  ...{ calls: 0, failed_calls: 0, estimated_calls: 0, input_tokens: 0, cached_tokens: 0, output_tokens: 0, reasoning_tokens: 0, saved_tokens: 42 },
  cost_nano_usd: 0n,
};
const statements = (dialect: Dialect): string[] => migrations(dialect).flatMap((step) => (step.version <= OLDEST ? step.statements : []));

async function holdsWhatWasThere(store: ColdStore): Promise<void> {
  await store.open();
  try {
    await store.addToLedger('new', [ROW]);
    const [row] = await store.readLedger({ from: '2026', to: '2027', by: ['user'], shadow: 'without' });
    assert.deepEqual([row?.calls, row?.input_tokens, row?.cost_nano_usd, row?.saved_tokens], [1, 10, 700n, 42]);
    assert.equal(await store.appendTurn(turn('s', 0, 'x')), 1);
  } finally {
    await store.close();
  }
}

describe('a database of an older hermes', () => {
  let postgres: PostgresService | undefined;
  const needs = skipWithout('postgres');
  before(async () => {
    if (needs.skip === false) postgres = await startPostgres();
  });
  after(() => postgres?.stop());

  it('is brought up to date, with all that is in it: SQLite', async () => {
    const file = join(temporaryFolder(), 'hermes.db');
    const { Database } = await initSqlJs();
    const db = new Database();
    for (const statement of [...statements('sqlite'), OLD_ROW, `PRAGMA user_version = ${OLDEST}`]) db.run(statement);
    writeFileSync(file, db.export());
    db.close();
    await holdsWhatWasThere(createSqljsStore(storeOptions(`sqlite:///${file}`, recordLog())));
    assert.ok(existsSync(file));
  });

  it('is brought up to date, with all that is in it: PostgreSQL', needs, async () => {
    const url = (await postgres?.createDatabase()) ?? assert.fail();
    const name = new URL(url).pathname.slice(1);
    const version = ['CREATE TABLE hermes_schema (version INTEGER NOT NULL PRIMARY KEY)', `INSERT INTO hermes_schema SELECT generate_series(1, ${OLDEST})`];
    for (const statement of [...statements('postgres'), OLD_ROW, ...version]) await postgres?.sql(statement, name);
    await holdsWhatWasThere(createPostgresStore(storeOptions(url, recordLog())));
  });
});

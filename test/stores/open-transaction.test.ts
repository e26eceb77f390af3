import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openDatabase } from '../../src/stores/cold/sqljs/database.ts';
import { OpenTransaction } from '../../src/stores/cold/sqljs/open-transaction.ts';

async function opened() {
  const db = await openDatabase(undefined);
  db.run('CREATE TABLE said (text TEXT)');
  const put = (text: string): number => db.run('INSERT INTO said VALUES ($1)', [text]);
  const said = (): unknown[] => db.all('SELECT text FROM said ORDER BY rowid').map(([text]) => text);
  return { db, put, said, open: new OpenTransaction(db, (_db, record) => put(record)) };
}

test('an open transaction is as before the present batch when that is undone, however many came before', async () => {
  const { put, said, open } = await opened();
  for (const record of ['a', 'b', 'c']) {
    open.begin();
    put(record);
    open.keep([record]);
  }
  open.begin();
  put('never');
  open.undo();
  assert.deepEqual(said(), ['a', 'b', 'c']);
  put('d');
  open.keep(['d']);
  open.commit();
  assert.equal(open.active, false);
  assert.deepEqual(said(), ['a', 'b', 'c', 'd']);
});

test('it ends by itself: after a time, so many records, and so many characters', async () => {
  const { open } = await opened();
  open.begin();
  open.keep(Array.from({ length: 1_999 }, () => 'x'));
  assert.equal(open.active, true);
  open.keep(['x']);
  assert.equal(open.active, false);
  open.begin();
  open.keep(['x'.repeat(9 * 2 ** 20)]);
  assert.equal(open.active, false);
  open.begin();
  open.keep(['x']);
  for (const end = performance.now() + 10_000; open.active && performance.now() < end; ) await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(open.active, false);
});

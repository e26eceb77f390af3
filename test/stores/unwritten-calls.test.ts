import assert from 'node:assert/strict';
import fs, { appendFileSync, readdirSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import type { ColdStore, LedgerRow } from '../../src/contracts/cold-store.ts';
import { createUnwrittenCalls } from '../../src/stores/cold/sqljs/unwritten-calls.ts';
import createSqljsStore from '../../src/stores/cold/sqljs.ts';
import { temporaryFolder } from '../services.ts';
import { recordLog, storeOptions } from './fixture.ts';

const none = { calls: 0, failed_calls: 0, estimated_calls: 0, input_tokens: 0, cached_tokens: 0, output_tokens: 0, reasoning_tokens: 0, saved_tokens: 0 };
const call = (user: string, more: Partial<LedgerRow> = {}): LedgerRow => ({
  ...{ hour: '2026-11-30T12:00Z', project: 'p', service: 's', user, session: '', key: 'k', route: 'r', model: 'm', upstream: 'u', shadow: false },
  ...{ ...none, calls: 1, input_tokens: 10, output_tokens: 5, cost_nano_usd: 9_007_199_254_740_993n },
  ...more,
});
/** A line of one call is its key and its sums in one. */
const noted = (row: LedgerRow): [LedgerRow, LedgerRow] => [row, row];
/** What is noted is written in the same turn of the loop. */
const writing = (): Promise<void> => Promise.resolve();
const unexpected = (error: unknown): never => assert.fail(String(error));
async function opened(file: string): Promise<ColdStore> {
  const store = createSqljsStore(storeOptions(`sqlite:///${file}`, recordLog()));
  await store.open();
  return store;
}
const booked = async (store: ColdStore): Promise<Record<string, [number, number, bigint]>> => {
  const rows = await store.readLedger({ from: '2026-01-01T00:00Z', to: '2027-01-01T00:00Z', by: ['user'], shadow: 'without' });
  return Object.fromEntries(rows.map(({ user, calls, input_tokens, cost_nano_usd }) => [user, [calls, input_tokens, cost_nano_usd]]));
};
const left = (file: string): string[] => readdirSync(dirname(file)).filter((name) => name.includes('.calls-'));

describe('calls that were booked and not written when the process was killed', () => {
  it('are in the ledger when the store is opened again, each once', async () => {
    const file = join(temporaryFolder(), 'hermes.db');
    const killed = createUnwrittenCalls(file, unexpected);
    for (const user of ['a', 'b', 'a', 'line\n"of" two']) killed.note('batch-1', user, ...noted(call(user)));
    killed.note('batch-2', 'a', ...noted(call('a', { calls: 1, failed_calls: 1, cost_nano_usd: 0n })));
    await writing();
    const once = 9_007_199_254_740_993n;
    for (let i = 0; i < 2; i++) {
      const store = await opened(file);
      assert.deepEqual(await booked(store), { a: [3, 30, once * 2n], b: [1, 10, once], 'line\n"of" two': [1, 10, once] });
      assert.deepEqual(left(file), []);
      await store.close();
    }
  });
  it('are not added when the database had taken the batch already', async () => {
    const file = join(temporaryFolder(), 'hermes.db');
    const store = await opened(file);
    await store.addToLedger('batch', [call('a')]);
    await store.close();
    createUnwrittenCalls(file, unexpected).note('batch', 'a', ...noted(call('a')));
    await writing();
    const again = await opened(file);
    assert.deepEqual((await booked(again)).a?.[0], 1);
    assert.deepEqual(left(file), []);
    await again.close();
  });
  it('are read up to where a full disk or a power cut ended the file', async () => {
    const file = join(temporaryFolder(), 'hermes.db');
    const killed = createUnwrittenCalls(file, unexpected);
    killed.note('batch', 'a', ...noted(call('a')));
    killed.note('batch', 'a', ...noted(call('a')));
    await writing();
    const name = left(file)[0] ?? assert.fail();
    appendFileSync(join(dirname(file), name), '[0,1,0\n[0,x,0,0,10,0,5,0,1]\n{"hour"\n\u0000\u0000\n[0,1,0');
    const store = await opened(file);
    assert.deepEqual((await booked(store)).a?.slice(0, 2), [2, 20]);
    await store.close();
  });
  it('leave no file when they are written, and none for a database in memory', async () => {
    const file = join(temporaryFolder(), 'hermes.db');
    const store = await opened(file);
    store.noteCall?.('batch', 'a', ...noted(call('a')));
    assert.equal(left(file).length, 1);
    await store.addToLedger('batch', [call('a')]);
    assert.deepEqual(left(file), []);
    await store.close();
    assert.equal(createSqljsStore(storeOptions('sqlite::memory:', recordLog())).noteCall, undefined);
  });
  it('that a full disk did not take, or took a part of, are in the file once it does, with the numbers of their lines', async (context) => {
    const file = join(temporaryFolder(), 'hermes.db');
    const errors: unknown[] = [];
    const killed = createUnwrittenCalls(file, (error) => errors.push(error));
    const note = async (user: string): Promise<void> => {
      killed.note('batch', user, ...noted(call(user)));
      await writing();
    };
    await note('a');
    const { writeSync } = fs;
    const part = (descriptor: number, bytes: Uint8Array): number => writeSync(descriptor, bytes.subarray(0, bytes.length / 2));
    const nothing = (): never => {
      throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
    };
    for (const [user, taken] of [
      ['b', part],
      ['c', nothing],
    ] as const) {
      const full = context.mock.method(fs, 'writeSync', taken);
      syncBuiltinESMExports();
      await note(user);
      full.mock.restore();
      syncBuiltinESMExports();
    }
    assert.equal(errors.length, 1, 'told once');
    await note('b');
    const store = await opened(file);
    assert.deepEqual(
      Object.entries(await booked(store)).map(([user, [calls]]) => `${user} ${calls}`),
      ['a 1', 'b 2', 'c 1'],
    );
    await store.close();
  });
  it('are told once, and go on in memory, where the disk does not take them', () => {
    const errors: unknown[] = [];
    const calls = createUnwrittenCalls(join(temporaryFolder(), 'nowhere', 'hermes.db'), (error) => errors.push(error));
    calls.note('batch', 'a', ...noted(call('a')));
    calls.note('batch', 'a', ...noted(call('a')));
    assert.equal(errors.length, 1);
  });
});

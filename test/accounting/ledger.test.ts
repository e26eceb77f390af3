import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Ledger, withBooks } from '../../src/accounting/ledger.ts';
import { recordLog } from '../stores/fixture.ts';
import { fakeLedgerStore, makeCall, makeClock, NO_TOKENS, openCold, sumOf } from './accounting-kit.ts';

const ZONE = 'Asia/Shanghai';
const environment = makeClock('2026-11-30T12:00:00Z');

describe('the ledger', () => {
  it('sums calls of one hour and one kind into one line', async () => {
    const cold = fakeLedgerStore();
    const ledger = new Ledger({ cold, log: recordLog(), environment });
    ledger.add(makeCall({ tokens: { ...NO_TOKENS, input: 5, cached: 2, output: 3, reasoning: 1 }, costNanoUsd: 7 }), ZONE);
    ledger.add(makeCall({ outcome: 'timeout', costNanoUsd: undefined, tokens: NO_TOKENS }), ZONE);
    ledger.add(makeCall({ outcome: 'aborted', estimated: true, costNanoUsd: 3 }), ZONE);
    ledger.add(makeCall({ shadow: true }), ZONE);
    await ledger.flush();
    const [rows = []] = [...cold.batches.values()];
    assert.equal(rows.length, 2);
    const { hour, calls, failed_calls, estimated_calls, input_tokens, cached_tokens, output_tokens, reasoning_tokens, cost_nano_usd } =
      rows[0] ?? assert.fail();
    assert.deepEqual(
      { hour, calls, failed_calls, estimated_calls, input_tokens, cached_tokens, output_tokens, reasoning_tokens, cost_nano_usd },
      {
        hour: '2026-11-30T12:00Z',
        calls: 3,
        failed_calls: 1,
        estimated_calls: 1,
        input_tokens: 105,
        cached_tokens: 2,
        output_tokens: 13,
        reasoning_tokens: 1,
        cost_nano_usd: 10n,
      },
    );
    assert.equal(rows[1]?.shadow, true);
  });
  it('books what the answer cache has saved beside what was spent, and no call', async () => {
    const cold = fakeLedgerStore();
    const ledger = new Ledger({ cold, log: recordLog(), environment });
    const call = makeCall();
    ledger.add(call, ZONE);
    for (const tokens of [15, 27]) ledger.addSaved({ ...call, tokens }, ZONE);
    ledger.addSaved({ ...call, user: 'u2', tokens: 4 }, ZONE);
    await ledger.flush();
    assert.deepEqual(
      [...cold.batches.values()]
        .flat()
        .map(({ user, calls, input_tokens, saved_tokens, cost_nano_usd }) => [user, calls, input_tokens, saved_tokens, cost_nano_usd]),
      [
        ['u1', 1, 100, 42, 1000n],
        ['u2', 0, 0, 4, 0n],
      ],
    );
  });
  it('books by the start of the call', async () => {
    const cold = fakeLedgerStore();
    const ledger = new Ledger({ cold, log: recordLog(), environment });
    ledger.add(makeCall({ startedAt: Date.parse('2026-11-30T11:59:59.999Z'), durationMs: 60_000 }), ZONE);
    await ledger.flush();
    assert.equal([...cold.batches.values()][0]?.[0]?.hour, '2026-11-30T11:00Z');
  });
  it('stores by itself, a batch at a time', async () => {
    const cold = fakeLedgerStore();
    const ledger = new Ledger({ cold, log: recordLog(), environment }, { flushMs: 10 });
    for (let i = 0; i < 50; i++) ledger.add(makeCall({ user: `u${i}` }), ZONE);
    await sleep(60);
    assert.equal(cold.batches.size, 1);
    assert.equal(sumOf([...cold.batches.values()].flat()), 50);
    assert.deepEqual([...ledger.pending()], []);
  });
  it('keeps a batch under its own number while the store is away, and tells it once', async () => {
    const cold = fakeLedgerStore();
    const log = recordLog();
    const ledger = new Ledger({ cold, log, environment }, { flushMs: 5 });
    cold.away = true;
    ledger.add(makeCall(), ZONE);
    await ledger.flush();
    ledger.add(makeCall(), ZONE);
    await sleep(40);
    assert.equal(sumOf(ledger.pending()), 2);
    assert.equal(new Set(cold.tries).size, 1, 'one batch is tried, what came later waits for it');
    cold.away = false;
    await ledger.flush();
    assert.equal(sumOf([...cold.batches.values()].flat()), 2);
    assert.equal(cold.batches.size, 2);
    assert.deepEqual(
      log.lines.map(({ level }) => level),
      ['warn', 'info'],
    );
  });
  it('does not add a batch twice whose answer got lost', async () => {
    const cold = await openCold();
    let lose = true;
    const lossy = {
      name: cold.name,
      async addToLedger(...args: Parameters<typeof cold.addToLedger>) {
        await cold.addToLedger(...args);
        if (lose) throw new Error('the answer got lost');
      },
    };
    const ledger = new Ledger({ cold: lossy, log: recordLog(), environment });
    ledger.add(makeCall(), ZONE);
    await ledger.flush();
    lose = false;
    await ledger.flush();
    const rows = await cold.readLedger({ from: '2026', to: '2027', by: [], shadow: 'with' });
    assert.deepEqual([rows[0]?.calls, rows[0]?.cost_nano_usd], [1, 1000n]);
    await cold.close();
  });
});

describe('the ledger and its store', () => {
  it('no longer tells users apart when a store is away for long, but loses no money', async () => {
    const cold = fakeLedgerStore();
    const ledger = new Ledger({ cold, log: recordLog(), environment }, { mostRows: 3 });
    for (let i = 0; i < 10; i++) ledger.add(makeCall({ user: `u${i}`, session: `s${i}` }), ZONE);
    ledger.add(makeCall({ user: 'u0', session: 's0' }), ZONE);
    assert.equal([...ledger.pending()].length, 4);
    assert.equal(sumOf(ledger.pending()), 11);
  });
  it('stores what is left when it closes, also when the store comes back late', async () => {
    const cold = fakeLedgerStore();
    const ledger = new Ledger({ cold, log: recordLog(), environment });
    cold.away = true;
    ledger.add(makeCall(), ZONE);
    setTimeout(() => {
      cold.away = false;
    }, 100);
    await ledger.close();
    assert.equal(sumOf([...cold.batches.values()].flat()), 1);
  });
  it('reads its own writes through the store', async () => {
    const cold = await openCold();
    const ledger = new Ledger({ cold, log: recordLog(), environment });
    const books = withBooks(cold, ledger);
    ledger.add(makeCall(), ZONE);
    const rows = await books.readLedger({ from: '2026', to: '2027', by: ['service'], shadow: 'without' });
    assert.equal(rows[0]?.calls, 1);
    await cold.close();
  });
  it('hands on what an exact read throws, and goes on', async () => {
    const ledger = new Ledger({ cold: fakeLedgerStore(), log: recordLog(), environment });
    await assert.rejects(ledger.exclusive(() => Promise.reject(new Error('away'))));
    assert.equal(await ledger.exclusive(async () => 7), 7);
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Ledger } from '../../src/accounting/ledger.ts';
import { readReport } from '../../src/accounting/report.ts';
import { toCsv, toDollars, toJsonReport } from '../../src/accounting/report-format.ts';
import { parseReportQuery } from '../../src/accounting/report-query.ts';
import type { ColdStore } from '../../src/contracts/cold-store.ts';
import { HermesError } from '../../src/contracts/errors.ts';
import { stringifyJson } from '../../src/wire/json.ts';
import { recordLog } from '../stores/fixture.ts';
import { makeCall, makeClock, NO_TOKENS, openCold } from './accounting-kit.ts';

const ZONE = 'Asia/Shanghai';
const now = Date.parse('2026-12-01T10:00:00+08:00');
const environment = makeClock(now);
const parse = (text: string, zone = ZONE) => parseReportQuery(new URLSearchParams(text), zone, now);
const refused = (text: string, param: string): void => {
  assert.throws(
    () => parse(text),
    (thrown) => thrown instanceof HermesError && thrown.code === 'invalid_value' && thrown.param === param,
    text,
  );
};
const at = (text: string): number => Date.parse(text);

describe('the question of a report', () => {
  it('is today by service when nothing is said', () => {
    const { from, to, by, top, shadow } = parse('');
    assert.deepEqual([from, to, by, top, shadow], [at('2026-12-01T00:00+08:00'), at('2026-12-02T00:00+08:00'), ['service'], undefined, 'without']);
  });
  it('names a day of cost.timezone', () => {
    assert.equal(parse('day=yesterday').from, at('2026-11-30T00:00+08:00'));
    assert.equal(parse('day=2026-02-28').to, at('2026-03-01T00:00+08:00'));
    const long = parse('day=2026-11-01', 'America/New_York');
    assert.equal(long.to - long.from, 25 * 3_600_000, 'clocks go back that day');
  });
  it('names a period, dates with the last day in it', () => {
    const { from, to } = parse('from=2026-11-01&to=2026-11-30');
    assert.deepEqual([from, to], [at('2026-11-01T00:00+08:00'), at('2026-12-01T00:00+08:00')]);
    assert.equal(parse('from=2026-11-30T17:00Z&to=2026-11-30T18:00Z').to, at('2026-11-30T18:00Z'));
    assert.equal(parse(`from=${now}`).from, now);
    assert.ok(parse('to=2026-11-30').from <= 0);
  });
  it('is refused by name when it makes no sense', () => {
    refused('day=junk', 'day');
    refused('day=2026-02-30', 'day');
    refused('day=today&from=2026-01-01', 'day');
    refused('from=now', 'from');
    refused('from=2026-12-02&to=2026-12-01', 'to');
    refused('by=junk', 'by');
    refused('by=hour,day,service,user,model,route,key', 'by');
    refused('top=0', 'top');
    refused('top=1.5', 'top');
    refused('shadow=maybe', 'shadow');
  });
  it('takes every group, each once', () => {
    assert.deepEqual(parse('by=model,%20Model,upstream').by, ['model', 'upstream']);
  });
});

describe('a report', () => {
  let cold: ColdStore;
  before(async () => {
    cold = await openCold();
    const ledger = new Ledger({ cold, log: recordLog(), environment });
    const call = (startedAt: string, over: object): void => ledger.add(makeCall({ startedAt: at(startedAt), ...over }), ZONE);
    call('2026-11-30T23:59:59+08:00', { service: 'kb', costNanoUsd: 5 });
    call('2026-12-01T00:00:00+08:00', { service: 'kb', costNanoUsd: 7, user: '=cmd()|"x"', model: 'smart_model' });
    call('2026-12-01T08:30:00+08:00', { service: 'support', costNanoUsd: 100, outcome: 'error', tokens: { ...NO_TOKENS, input: 1 } });
    call('2026-12-01T09:30:00+08:00', { service: 'support', costNanoUsd: 2, estimated: true });
    call('2026-12-01T09:31:00+08:00', { service: 'support', costNanoUsd: 1000, shadow: true });
    await ledger.flush();
  });
  after(() => cold.close());
  const report = (text: string) => readReport(cold, parse(text), ZONE);
  const costs = async (text: string): Promise<unknown[]> =>
    (await report(text)).rows.map(({ group, cost_nano_usd }) => [...Object.values(group), Number(cost_nano_usd)]);

  it('has the dearest rows first, a day from midnight to midnight, shadows apart', async () => {
    assert.deepEqual(await costs('day=today'), [
      ['support', 102],
      ['kb', 7],
    ]);
    assert.deepEqual(await costs('day=yesterday'), [['kb', 5]]);
    assert.deepEqual(await costs('day=today&shadow=only'), [['support', 1000]]);
    assert.deepEqual(await costs('day=today&shadow=with&by=shadow'), [
      [true, 1000],
      [false, 109],
    ]);
  });
  it('has hours and days in order of time', async () => {
    assert.deepEqual(await costs('day=today&by=hour'), [
      ['2026-11-30T16:00Z', 7],
      ['2026-12-01T00:00Z', 100],
      ['2026-12-01T01:00Z', 2],
    ]);
    assert.deepEqual(await costs('from=2026-11-30&to=2026-12-01&by=day'), [
      ['2026-11-30', 5],
      ['2026-12-01', 109],
    ]);
    assert.deepEqual(await costs('from=2026-11-30&by=day,service'), [
      ['2026-11-30', 'kb', 5],
      ['2026-12-01', 'support', 102],
      ['2026-12-01', 'kb', 7],
    ]);
  });
  it('adds up to the same total by every grouping, with top too', async () => {
    for (const by of ['service', 'hour', 'day', 'user', 'session', 'key', 'route', 'model', 'upstream', 'project', 'model,upstream,user']) {
      const { rows, total } = await report(`from=2026-11-01&by=${by}`);
      assert.equal(
        rows.reduce((sum, row) => sum + row.cost_nano_usd, 0n),
        total.cost_nano_usd,
        by,
      );
      assert.deepEqual([total.calls, total.cost_nano_usd, total.failed_calls, total.estimated_calls], [4, 114n, 1, 1], by);
    }
    const { rows, total } = await report('from=2026-11-01&by=hour&top=1');
    assert.deepEqual([rows.length, rows[0]?.cost_nano_usd, total.cost_nano_usd], [1, 100n, 114n]);
  });
  it('says the same as JSON and as CSV', async () => {
    const made = await report('day=today&by=user,model');
    const json = JSON.parse(stringifyJson(toJsonReport(made, ZONE))) as { rows: Record<string, unknown>[]; total: Record<string, unknown> };
    assert.deepEqual(json.rows[1], {
      user: '=cmd()|"x"',
      model: 'smart_model',
      calls: 1,
      failed_calls: 0,
      estimated_calls: 0,
      input_tokens: 100,
      cached_tokens: 0,
      output_tokens: 10,
      reasoning_tokens: 0,
      saved_tokens: 0,
      cost_nano_usd: 7,
      cost_usd: 0.000000007,
    });
    assert.deepEqual([json.total.calls, json.total.cost_nano_usd, json.total.cost_usd], [3, 109, 0.000000109]);
    const lines = toCsv(made).trimEnd().split('\r\n');
    assert.equal(
      lines[0],
      'user,model,calls,failed_calls,estimated_calls,input_tokens,cached_tokens,output_tokens,reasoning_tokens,cost_nano_usd,cost_usd,saved_tokens',
    );
    assert.equal(lines[1], 'u1,fast_model,2,1,1,101,0,10,0,102,0.000000102,0');
    assert.equal(lines[2], `"'=cmd()|""x""",smart_model,1,0,0,100,0,10,0,7,0.000000007,0`, 'no spreadsheet runs what a user calls itself');
  });
  it('keeps every digit of sums beyond 2^53', () => {
    const nano = 2n ** 60n + 1n;
    const sums = {
      calls: 1,
      failed_calls: 0,
      estimated_calls: 0,
      input_tokens: 0,
      cached_tokens: 0,
      output_tokens: 0,
      reasoning_tokens: 0,
      saved_tokens: 0,
      cost_nano_usd: nano,
    };
    const text = stringifyJson(toJsonReport({ query: parse(''), rows: [], total: sums }, ZONE));
    assert.ok(text.includes(`"cost_nano_usd":${nano}`));
    assert.equal(toDollars(nano), '1152921504.606846977');
    assert.equal(toDollars(-5n), '-0.000000005');
  });
});

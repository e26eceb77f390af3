import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Ledger } from '../../src/accounting/ledger.ts';
import create from '../../src/stores/cold/sqljs.ts';
import { KEY, type RunningApp, startApp, user } from '../app-kit.ts';
import { recordLog, storeOptions } from '../stores/fixture.ts';
import { makeCall, makeClock, NO_TOKENS } from './accounting-kit.ts';

const folder = mkdtempSync(join(tmpdir(), 'hermes-cost-'));
const file = join(folder, 'hermes.yaml');
const database = `sqlite:///${join(folder, 'hermes.db')}`;

function cli(args: string[], env: Record<string, string> = {}): Promise<{ code: number; out: string; err: string }> {
  return new Promise((resolve) => {
    const whole = ['--import', 'tsx', 'src/main.ts', 'cost', ...args];
    const own = { PATH: process.env.PATH ?? '', DATABASE_URL: database, API_KEY: KEY, HERMES_CONFIG: file, ...env };
    execFile(process.execPath, whole, { env: own }, (error, out, err) => resolve({ code: error === null ? 0 : Number(error.code), out, err }));
  });
}

describe('hermes-cli cost', () => {
  before(async () => {
    writeFileSync(
      file,
      JSON.stringify({ models: [{ id: 'fast_model', provider: 'openai', model_name: 'gpt-4o-mini' }], cost: { timezone: 'UTC' }, server: { port: 1 } }),
    );
    const cold = create(storeOptions(database));
    await cold.open();
    const ledger = new Ledger({ cold, log: recordLog(), environment: makeClock(Date.now()) });
    const call = (day: string, service: string, costNanoUsd: number, output: number): void =>
      ledger.add(makeCall({ startedAt: Date.parse(`${day}T12:00:00Z`), service, costNanoUsd, tokens: { ...NO_TOKENS, input: 1000, output } }), 'UTC');
    call('2026-11-29', 'support', 2e9, 10);
    call('2026-11-30', 'support', 3e9, 20);
    call('2026-11-30', 'kb', 1e9, 5);
    await ledger.close();
    await cold.close();
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  it('report prints a table with bars, beside the day before', async () => {
    const { code, out, err } = await cli(['report', '--day', '2026-11-30', '--by', 'service']);
    assert.equal(code, 0, err);
    assert.match(out, /^2026-11-30T00:00:00\.000Z to 2026-12-01T00:00:00\.000Z \(UTC\)$/m);
    assert.match(out, /^support +1 +0 +1,000 +20 +\$3\.00 +75\.0 % +█{15} +\+50 %$/m);
    assert.match(out, /^kb +1 +0 +1,000 +5 +\$1\.00 +25\.0 % +█{5} +new$/m);
    assert.match(out, /^total +2 +0 +2,000 +25 +\$4\.00 +100\.0 % +█{20} +\+100 %$/m);
  });
  it('report gives CSV and JSON that add up to the same', async () => {
    const period = ['report', '--from', '2026-11-29', '--to', '2026-11-30', '--by', 'day', '--format'];
    const csv = await cli([...period, 'csv']);
    const json = await cli([...period, 'json']);
    const lines = csv.out
      .trim()
      .split('\r\n')
      .slice(1)
      .map((line) => line.split(','));
    assert.deepEqual(
      lines.map((cells) => [cells[0], cells[8]]),
      [
        ['2026-11-29', '2000000000'],
        ['2026-11-30', '4000000000'],
      ],
    );
    assert.equal((JSON.parse(json.out) as { total: { cost_nano_usd: number } }).total.cost_nano_usd, 6e9);
  });
  it("verify finds what a provider's file counts differently", async () => {
    const usage = join(folder, 'usage.csv');
    const header = 'date,model,requests,input_tokens,output_tokens\n';
    writeFileSync(usage, `${header}2026-11-30,gpt-4o-mini-2024-07-18,2,2000,26\n`);
    const { code, out } = await cli(['verify', usage]);
    assert.equal(code, 1);
    assert.match(out, /gpt-4o-mini +provider +2 +2,000 +– +26 +differs/);
    assert.match(out, /hermes +2 +2,000 +0 +25/);
  });
});

describe('hermes-cli cost report --url', () => {
  let app: RunningApp;
  before(async () => {
    app = await startApp({ models: [{ id: 'fast_model', provider: 'simulator', pricing: { input_per_million: 1, output_per_million: 1 } }], cache: {} });
    for (let time = 0; time < 3; time++) await app.chat({ messages: user('hello'), temperature: 0 });
  });
  after(() => app.stop());
  it('asks the gateway that runs there', async () => {
    const [good, refused, format] = await Promise.all([
      cli(['report', '--url', app.base]),
      cli(['report', '--url', app.base, '--format', 'csv'], { API_KEY: 'wrong' }),
      cli(['report', '--url', app.base, '--format', 'xml']),
    ]);
    assert.equal(good.code, 0, good.err);
    const { total } = (await app.fetch('/admin/costs')).json as { total: { calls: number; input_tokens: number; output_tokens: number; saved_tokens: number } };
    assert.equal(total.saved_tokens, 2 * (total.input_tokens + total.output_tokens));
    assert.match(good.out, /tokens out +saved +cost/);
    assert.match(good.out, new RegExp(`^default +1 +0 +${total.input_tokens} +${total.output_tokens} +${total.saved_tokens} `, 'm'));
    assert.deepEqual([refused.code, format.code], [1, 1]);
    assert.match(refused.err, /answered 401/);
    assert.match(format.err, /--format is table, json or csv/);
  });
});

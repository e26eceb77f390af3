import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import type { PostJson } from '../../src/accounting/budget-notice.ts';
import { Budgets } from '../../src/accounting/budgets.ts';
import { Ledger } from '../../src/accounting/ledger.ts';
import type { ColdStore } from '../../src/contracts/cold-store.ts';
import type { Config } from '../../src/contracts/config.ts';
import createMemoryStore from '../../src/stores/hot/memory.ts';
import { allows } from '../../src/wire/patterns.ts';
import { makeConfig } from '../config/make-config.ts';
import { until } from '../services.ts';
import { recordLog } from '../stores/fixture.ts';
import { type Clock, makeCall, makeClock, noMetrics, openCold } from './accounting-kit.ts';

const USD = 1_000_000_000;
const configOf = (budget: object, timezone = 'Asia/Shanghai'): Config =>
  makeConfig({ cost: { timezone, budgets: [{ id: 'b', notify: { url_env: 'HOOK' }, ...budget }] } }, { HOOK: 'http://hook.invalid/' });
const SPENDER = { service: 'support', project: 'shop', user: 'u1', key: 'k1' };

const posted: Record<string, unknown>[] = [];
const post: PostJson = async (_url, { body }) => {
  posted.push(JSON.parse(body) as Record<string, unknown>);
  return {};
};
const closing: { close(): Promise<void> }[] = [];
async function start(cold: ColdStore, clock: Clock, used: Config) {
  const log = recordLog();
  const hot = createMemoryStore({ keyPrefix: '', log, environment: clock });
  const ledger = new Ledger({ cold, log, environment: { ...clock, now: () => clock.at, uuid: () => crypto.randomUUID() } }, { flushMs: 5 });
  const budgets = new Budgets({ hot, cold, ledger, allows, post, log, metrics: noMetrics, environment: clock, pollMs: 20, firstPauseMs: 5 });
  await budgets.start(() => used);
  closing.push(budgets, ledger);
  return {
    budgets,
    log,
    spend(usd: number, over: Partial<typeof SPENDER> & { startedAt?: number } = {}) {
      const call = makeCall({ startedAt: clock.at, costNanoUsd: usd * USD, ...SPENDER, ...over });
      ledger.add(call, used.cost.timezone);
      budgets.heard(call, used);
    },
    isCrossed: (over: Partial<typeof SPENDER> = {}) => budgets.crossedFor({ ...SPENDER, ...over }, used).length > 0,
    async close() {
      await ledger.close();
      await budgets.close();
    },
  };
}
afterEach(async () => {
  for (const one of closing.splice(0)) await one.close();
  posted.splice(0);
});
const NOON = '2026-11-30T12:00:00+08:00';

describe('the scope of a budget', () => {
  for (const scope of ['project', 'user', 'key'] as const) {
    it(`may be one ${scope}, whose crossing concerns nobody else and is told by name`, async () => {
      const cold = await openCold();
      const one = await start(cold, makeClock(NOON), configOf({ [scope]: SPENDER[scope], usd_per_day: 10, action: 'refuse' }));
      one.spend(100, { [scope]: 'other' });
      assert.equal(one.isCrossed(), false);
      one.spend(10, { service: 'another' });
      assert.deepEqual([one.isCrossed(), one.isCrossed({ [scope]: 'other' })], [true, false]);
      await until(() => posted.length === 1, 'nobody was told');
      const notice = { event: 'budget_crossed', budget: 'b', service: null, [scope]: SPENDER[scope], day: '2026-11-30', usd: 10, limit_usd: 10 };
      assert.deepEqual(posted, [{ ...notice, switch_to: null, action: 'refuse', period: 'day' }]);
    });
  }
  it('that is a pattern is one sum, `*` one for each: users within their project', async () => {
    const cold = await openCold();
    const all = await start(cold, makeClock(NOON), configOf({ user: 'u*', usd_per_day: 10, switch_to: 'fast_model' }));
    all.spend(5);
    all.spend(5, { user: 'u2' });
    assert.deepEqual([all.isCrossed(), all.isCrossed({ user: 'u2' }), all.isCrossed({ user: 'v' })], [true, true, false]);

    const each = await start(await openCold(), makeClock(NOON), configOf({ user: '*', usd_per_day: 10, switch_to: 'fast_model' }));
    each.spend(9);
    each.spend(9, { user: 'u2' });
    each.spend(9, { project: 'other' });
    assert.deepEqual([each.isCrossed(), each.isCrossed({ user: 'u2' }), each.isCrossed({ project: 'other' })], [false, false, false]);
    each.spend(1, { user: 'u2' });
    assert.deepEqual([each.isCrossed(), each.isCrossed({ user: 'u2' }), each.isCrossed({ project: 'other' })], [false, true, false]);
    assert.equal(
      each.budgets.crossedFor({ service: 'support', project: 'shop', key: 'k1' }, configOf({ user: '*', usd_per_day: 0, action: 'refuse' })).length,
      0,
    );
    assert.ok(!JSON.stringify(each.log.lines).includes('u2'), 'users are not in the log');
    const [first] = each.budgets.views(configOf({ user: '*', usd_per_day: 10, switch_to: 'fast_model' }));
    assert.deepEqual([first?.value, first?.project, first?.state, first?.spent_usd], ['u2', 'shop', 'crossed', 10]);
  });
  it('of each keeps its sums and its one notice over a restart', async () => {
    const cold = await openCold();
    const clock = makeClock(NOON);
    const used = configOf({ key: '*', usd_per_day: 10, action: 'refuse' });
    const before = await start(cold, clock, used);
    before.spend(10);
    before.spend(9, { key: 'k2' });
    await until(() => posted.length === 1, 'nobody was told');
    await before.close();
    const after = await start(cold, clock, used);
    assert.deepEqual([after.isCrossed(), after.isCrossed({ key: 'k2' }), after.isCrossed({ key: 'k3' })], [true, false, false]);
    after.spend(1, { key: 'k2' });
    assert.equal(after.isCrossed({ key: 'k2' }), true);
    await until(() => posted.length === 2, 'the second key is told of');
    assert.deepEqual(
      posted.map(({ key }) => key),
      ['k1', 'k2'],
    );
    await after.budgets.lift('b', used);
    assert.deepEqual([after.isCrossed(), after.isCrossed({ key: 'k2' })], [false, false]);
  });
});

describe("a month's budget", () => {
  it('holds over midnight to the end of the month of its zone, also through a restart, and stands beside a day', async () => {
    const cold = await openCold();
    const used = configOf({ service: 'support', usd_per_day: 30, usd_per_month: 50, switch_to: 'fast_model' }, 'America/New_York');
    const clock = makeClock('2026-10-30T12:00:00Z');
    const one = await start(cold, clock, used);
    one.spend(30);
    assert.equal(one.isCrossed(), true, 'the day is used up');
    clock.at = Date.parse('2026-10-31T12:00:00Z');
    assert.equal(one.isCrossed(), false);
    one.spend(20);
    assert.equal(one.isCrossed(), true, 'the month is used up');
    await until(() => posted.length === 2, 'both are told');
    assert.deepEqual(
      posted.map(({ period, day, usd, limit_usd }) => [period, day, usd, limit_usd]),
      [
        ['day', '2026-10-30', 30, 30],
        ['month', '2026-10-31', 50, 50],
      ],
    );
    await one.close();
    const after = await start(cold, clock, used);
    assert.equal(after.isCrossed(), true);
    const [day, month] = after.budgets.views(used);
    assert.deepEqual([day?.period, day?.spent_usd, day?.state], ['day', 20, 'open']);
    assert.deepEqual([month?.spent_usd, month?.state, month?.resets_at], [50, 'crossed', '2026-11-01T04:00:00.000Z']);
    clock.at = Date.parse('2026-11-01T03:59:59Z');
    assert.equal(after.isCrossed(), true);
    clock.at = Date.parse('2026-11-01T04:00:00Z');
    assert.equal(after.isCrossed(), false);
    assert.equal(posted.length, 2);
  });
  it('warns at the share that it is given', async () => {
    const one = await start(await openCold(), makeClock(NOON), configOf({ service: 'support', usd_per_month: 100, action: 'refuse', warn_percent: 50 }));
    one.spend(49);
    assert.equal(one.log.lines.length, 0);
    one.spend(1);
    assert.deepEqual(
      one.log.lines.map(({ message }) => message),
      ['a budget is used up to 50 %'],
    );
  });
});

describe('the configuration of a budget', () => {
  const refuses = (budget: object, message: RegExp) => assert.throws(() => configOf(budget), message);
  it('needs one scope, one amount at least, and something to do', () => {
    refuses({ usd_per_day: 1, action: 'refuse' }, /needs one of service, project, user and key/);
    refuses({ service: 'a', user: 'b', usd_per_day: 1, action: 'refuse' }, /has service and user: give one/);
    refuses({ service: 'a', action: 'refuse' }, /limits nothing/);
    refuses({ service: 'a', usd_per_day: 1 }, /needs `switch_to`/);
    refuses({ service: 'a', usd_per_day: 1, action: 'refuse', switch_to: 'fast_model' }, /never uses/);
    refuses({ service: 'a', usd_per_day: 1, action: 'refuse', notify: { url_env: 'HOOK', secret_env: 'UNSET' } }, /UNSET is not set/);
  });
});

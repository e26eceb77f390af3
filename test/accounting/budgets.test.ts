import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import type { PostJson } from '../../src/accounting/budget-notice.ts';
import { Budgets } from '../../src/accounting/budgets.ts';
import { Ledger } from '../../src/accounting/ledger.ts';
import type { ColdStore } from '../../src/contracts/cold-store.ts';
import type { HotStore } from '../../src/contracts/hot-store.ts';
import createMemoryStore from '../../src/stores/hot/memory.ts';
import { allows } from '../../src/wire/patterns.ts';
import { makeConfig } from '../config/make-config.ts';
import { until } from '../services.ts';
import { recordLog } from '../stores/fixture.ts';
import { type Clock, makeCall, makeClock, noMetrics, openCold as openStore } from './accounting-kit.ts';

const USD = 1_000_000_000;
const configOf = (over: object = {}, timezone = 'Asia/Shanghai') =>
  makeConfig(
    {
      models: [
        { id: 'dear', provider: 'simulator', pricing: { input_per_million: 10, output_per_million: 10 } },
        { id: 'cheap', provider: 'simulator', pricing: { input_per_million: 1, output_per_million: 1 } },
      ],
      cost: {
        timezone,
        budgets: [{ id: 'support-daily', service: 'support', usd_per_day: 50, switch_to: 'cheap', notify: { url_env: 'HOOK' }, ...over }],
      },
    },
    { HOOK: 'http://hook.invalid/secret' },
  );
const config = configOf();

interface Instance {
  budgets: Budgets;
  ledger: Ledger;
  log: ReturnType<typeof recordLog>;
  spend(usd: number, over?: object): void;
  crossed(service?: string): string[];
}
const open: { close(): Promise<void> }[] = [];
const stores: ColdStore[] = [];
async function openCold(): Promise<ColdStore> {
  const cold = await openStore();
  stores.push(cold);
  return cold;
}
const posted: { url: string; body: Record<string, unknown> }[] = [];
let answer: () => unknown = () => ({});
const post: PostJson = async (url, { body }) => {
  posted.push({ url, body: JSON.parse(body) as Record<string, unknown> });
  return answer();
};

async function start(
  cold: ColdStore,
  clock: Clock,
  { hot, used = config, shared = false }: { hot?: HotStore; used?: typeof config; shared?: boolean } = {},
): Promise<Instance> {
  const log = recordLog();
  const memory = hot ?? createMemoryStore({ keyPrefix: '', log, environment: clock });
  const ledger = new Ledger({ cold, log, environment: { ...clock, now: () => clock.at, uuid: () => crypto.randomUUID() } }, { flushMs: 5 });
  const budgets = new Budgets({
    hot: shared ? { ...memory, shared: true } : memory,
    cold,
    ledger,
    allows,
    post,
    log,
    metrics: noMetrics,
    environment: clock,
    pollMs: 20,
    firstPauseMs: 5,
  });
  await budgets.start(() => used);
  open.push({
    async close() {
      await ledger.close();
      await budgets.close();
    },
  });
  return {
    budgets,
    ledger,
    log,
    spend(usd, over = {}) {
      const call = makeCall({ startedAt: clock.at, costNanoUsd: usd * USD, ...over });
      ledger.add(call, used.cost.timezone);
      budgets.heard(call, used);
    },
    crossed: (service = 'support') => budgets.crossedFor({ service, project: 'shop', user: 'u1', key: 'support' }, used).map(({ id }) => id),
  };
}
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
  for (const cold of stores.splice(0)) await cold.close();
  posted.splice(0);
  answer = () => ({});
});

describe('a budget', () => {
  it('is crossed when spent >= limit, at once, for its own service, and tells it once', async () => {
    const cold = await openCold();
    const clock = makeClock('2026-11-30T12:00:00+08:00');
    const one = await start(cold, clock);
    one.spend(39);
    one.spend(100, { service: 'kb' });
    one.spend(100, { shadow: true });
    assert.deepEqual(one.crossed(), []);
    one.spend(1);
    assert.deepEqual(
      one.log.lines.map(({ message }) => message),
      ['a budget is used up to 80 %'],
    );
    one.spend(10);
    assert.deepEqual(one.crossed(), ['support-daily']);
    assert.deepEqual(one.crossed('kb'), []);
    one.spend(5);
    await until(() => posted.length > 0, 'nobody was told');
    assert.deepEqual(posted, [
      {
        url: 'http://hook.invalid/secret',
        body: {
          event: 'budget_crossed',
          budget: 'support-daily',
          service: 'support',
          day: '2026-11-30',
          usd: 50,
          limit_usd: 50,
          switch_to: 'cheap',
          period: 'day',
        },
      },
    ]);
    const [view] = one.budgets.views(config);
    assert.deepEqual([view?.state, view?.spent_usd, view?.resets_at], ['crossed', 55, '2026-11-30T16:00:00.000Z']);
  });
  it('stays crossed after a restart, and is not told again', async () => {
    const cold = await openCold();
    const clock = makeClock('2026-11-30T12:00:00+08:00');
    const before = await start(cold, clock);
    before.spend(60);
    await until(() => posted.length === 1, 'nobody was told');
    await before.budgets.close();
    await before.ledger.close();
    const after = await start(cold, clock);
    assert.deepEqual(after.crossed(), ['support-daily']);
    assert.equal(after.budgets.views(config)[0]?.spent_usd, 60);
    after.spend(1);
    await new Promise((resolve) => setTimeout(resolve, 60));
    assert.equal(posted.length, 1);
  });
  it('counts what was spent before a restart, crossed or not', async () => {
    const cold = await openCold();
    const clock = makeClock('2026-11-30T12:00:00+08:00');
    const before = await start(cold, clock);
    before.spend(30);
    await before.ledger.close();
    const after = await start(cold, clock);
    assert.deepEqual(after.crossed(), []);
    after.spend(20);
    assert.deepEqual(after.crossed(), ['support-daily']);
  });
  it('whose notice was not taken before a restart is told after it', async () => {
    const cold = await openCold();
    const clock = makeClock('2026-11-30T12:00:00+08:00');
    answer = () => {
      throw new Error('status 503');
    };
    const before = await start(cold, clock);
    before.spend(60);
    await until(() => posted.length > 2, 'it was not tried again');
    await before.budgets.close();
    await before.ledger.close();
    posted.splice(0);
    answer = () => ({});
    await start(cold, clock);
    await until(() => posted.length === 1, 'nobody was told after the restart');
  });
});

describe('the day of a budget', () => {
  it('is released at midnight of its zone, also on the days that clocks change', async () => {
    const cold = await openCold();
    const used = configOf({ notify: undefined }, 'America/New_York');
    // 2026-11-01 has 25 hours there: from 04:00Z to 05:00Z of the next day.
    const clock = makeClock('2026-11-01T12:00:00Z');
    const one = await start(cold, clock, { used });
    one.spend(60);
    assert.deepEqual(one.crossed(), ['support-daily']);
    clock.at = Date.parse('2026-11-02T04:59:59Z');
    assert.deepEqual(one.crossed(), ['support-daily']);
    clock.at = Date.parse('2026-11-02T05:00:00Z');
    assert.deepEqual(one.crossed(), []);
    assert.equal(one.budgets.views(used)[0]?.spent_usd, 0);
    one.spend(60, { startedAt: clock.at - 1000 });
    assert.deepEqual(one.crossed(), [], 'a call that began yesterday is of yesterday');
  });
  it('can be lifted for the rest of the day, over restarts', async () => {
    const cold = await openCold();
    const clock = makeClock('2026-11-30T12:00:00+08:00');
    const one = await start(cold, clock);
    one.spend(60);
    assert.equal((await one.budgets.lift('support-daily', config))?.state, 'lifted');
    assert.equal(await one.budgets.lift('none', config), undefined);
    one.spend(10);
    assert.deepEqual(one.crossed(), []);
    const after = await start(cold, clock);
    assert.deepEqual(after.crossed(), []);
    assert.equal(after.budgets.views(config)[0]?.state, 'lifted');
    clock.at += 86_400_000;
    after.spend(60);
    assert.deepEqual(after.crossed(), ['support-daily'], 'the next day it holds again');
  });
  it('with another limit is another line to cross', async () => {
    const cold = await openCold();
    const clock = makeClock('2026-11-30T12:00:00+08:00');
    const one = await start(cold, clock);
    one.spend(60);
    const raised = configOf({ usd_per_day: 70 });
    const spender = { service: 'support', project: 'shop', key: 'support' };
    assert.deepEqual(one.budgets.crossedFor(spender, raised), []);
    one.budgets.heard(makeCall({ startedAt: clock.at, costNanoUsd: 10 * USD }), raised);
    assert.equal(one.budgets.crossedFor(spender, raised).length, 1);
    await until(() => posted.length === 2, 'the second crossing is another one');
  });
});

describe('a budget of several instances', () => {
  it('crossed by two at once is told once, and both switch', async () => {
    const cold = await openCold();
    const clock = makeClock('2026-11-30T12:00:00+08:00');
    // Two processes on one PostgreSQL: the same store under another name.
    const postgres: ColdStore = { ...cold, name: 'postgres' };
    const [a, b] = [await start(postgres, clock), await start(postgres, clock)];
    a.spend(60);
    b.spend(60);
    await until(() => posted.length > 0, 'nobody was told');
    await new Promise((resolve) => setTimeout(resolve, 60));
    assert.equal(posted.length, 1);
    assert.deepEqual([a.crossed(), b.crossed()], [['support-daily'], ['support-daily']]);
  });
  it('counts what the others spend, and follows their lifts', async () => {
    const cold = await openCold();
    const clock = makeClock('2026-11-30T12:00:00+08:00');
    const postgres: ColdStore = { ...cold, name: 'postgres' };
    const [a, b] = [await start(postgres, clock), await start(postgres, clock)];
    a.spend(30);
    b.spend(25);
    await a.ledger.flush();
    await b.ledger.flush();
    clock.at += 20_000;
    await until(() => a.crossed().length === 1 && b.crossed().length === 1, 'the sum of both crosses');
    await a.budgets.lift('support-daily', config);
    await until(() => b.crossed().length === 0, 'a lift is for all');
  });
  it('that share only Redis switch together and tell once', async () => {
    const [coldA, coldB] = [await openCold(), await openCold()];
    const clock = makeClock('2026-11-30T12:00:00+08:00');
    const hot = createMemoryStore({ keyPrefix: '', log: recordLog(), environment: clock });
    const [a, b] = [await start(coldA, clock, { hot, shared: true }), await start(coldB, clock, { hot, shared: true })];
    a.spend(60);
    await until(() => b.crossed().length === 1, 'the other switches, too');
    b.spend(60);
    await new Promise((resolve) => setTimeout(resolve, 60));
    assert.equal(posted.length, 1);
  });
});

describe('a budget while its store is away', () => {
  it('goes on by what this process has seen, and catches up', async () => {
    const cold = await openCold();
    const clock = makeClock('2026-11-30T12:00:00+08:00');
    let away = true;
    const orAway = <T>(method: T): T => {
      if (away) throw new Error('away');
      return method;
    };
    const store: ColdStore = {
      ...cold,
      addToLedger: async (...args) => orAway(cold.addToLedger)(...args),
      readLedger: async (...args) => orAway(cold.readLedger)(...args),
      getValue: async (...args) => orAway(cold.getValue)(...args),
      setValue: async (...args) => orAway(cold.setValue)(...args),
    };
    const one = await start(store, clock);
    one.spend(60);
    assert.deepEqual(one.crossed(), ['support-daily']);
    await until(() => posted.length === 1, 'somebody is told all the same');
    away = false;
    await one.ledger.flush();
    await until(async () => (await cold.readLedger({ from: '2026', to: '2027', by: [], shadow: 'with' })).length === 1, 'the books are not whole');
    assert.equal(one.budgets.views(config)[0]?.spent_usd, 60);
  });
});

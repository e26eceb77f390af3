import type { ColdStore } from '../contracts/cold-store.ts';
import type { BudgetConfig, Config } from '../contracts/config.ts';
import type { ModelCall } from '../contracts/exchange.ts';
import type { HotStore } from '../contracts/hot-store.ts';
import type { Environment, Log, Metrics } from '../contracts/telemetry.ts';
import { BudgetCounts, type Count, type Counts } from './budget-counts.ts';
import { BudgetFlags, type BudgetMark, type Crossing } from './budget-flags.ts';
import { type BudgetLine, countOf, linesOf, namesOf, periodNameAt, type Spender } from './budget-lines.ts';
import { type BudgetNotice, deliver, type PostJson } from './budget-notice.ts';
import { readSpending } from './budget-spending.ts';
import { type BudgetView, toViews } from './budget-view.ts';
import { dayOf } from './calendar.ts';
import type { Ledger } from './ledger.ts';

export interface BudgetDeps {
  hot: Pick<HotStore, 'get' | 'set' | 'shared'>;
  /** The store itself: reading through the books would wait for the ledger, which waits for this. */
  cold: Pick<ColdStore, 'name' | 'getValue' | 'setValue' | 'readLedger'>;
  ledger: Pick<Ledger, 'exclusive' | 'pending'>;
  allows(patterns: readonly string[], name: string): boolean;
  post: PostJson;
  log: Log;
  metrics: Metrics;
  environment: Environment;
  /** For tests. */
  pollMs?: number;
  firstPauseMs?: number;
}

const NANO = 1_000_000_000;
const POLL_MS = 1_000;
/** Reading the sums of others costs a query: often only where a budget is half used. */
const READ_MS = 2_000;
const READ_SELDOM_MS = 10_000;
/** By then whoever claimed a notice has given up, or is gone. */
const ORPHAN_MS = 15 * 60_000;

/** `cost.budgets`: what has been spent in this day and month, by whom, and which limits that has crossed. */
export class Budgets {
  readonly #deps: BudgetDeps;
  readonly #flags: BudgetFlags;
  readonly #crossed;
  readonly #counts: BudgetCounts;
  readonly #stop = new AbortController();
  readonly #notices = new Set<Promise<unknown>>();
  #timer: NodeJS.Timeout | undefined;
  #reading: Promise<void> | undefined;
  #polling: Promise<void> | undefined;
  #readAt = 0;

  constructor(deps: BudgetDeps) {
    this.#deps = deps;
    this.#flags = new BudgetFlags(deps.cold, deps.hot);
    this.#counts = new BudgetCounts(deps.environment, deps.log);
    this.#crossed = deps.metrics.counter('hermes_budgets_crossed_total', 'Budgets that were crossed, as this process learned of it.', ['budget']);
  }

  /** Reads what the period has brought so far, and follows other instances from now on. Resolves when the state is known, or the stores are away. */
  async start(config: () => Config): Promise<void> {
    this.#timer = setInterval(() => {
      this.#polling ??= this.#poll(config()).finally(() => {
        this.#polling = undefined;
      });
    }, this.#deps.pollMs ?? POLL_MS);
    this.#timer.unref();
    if (config().cost.budgets.length > 0) await this.refresh(config());
  }

  /** Every priced call, at once: the next request already finds the budget crossed. */
  heard(call: ModelCall, config: Config): void {
    if (config.cost.budgets.length === 0 || call.shadow || !call.costNanoUsd) return;
    const { timezone } = config.cost;
    for (const line of allLines(config)) {
      const key = countOf(line, call, this.#deps.allows);
      if (key === undefined) continue;
      const counts = this.#counts.of(line, timezone);
      if (periodNameAt(line.period, call.startedAt, timezone) !== counts.period.name) continue;
      const count = this.#counts.get(counts, line, key);
      if (count === undefined) continue;
      count.spent += call.costNanoUsd;
      this.#judge(line, counts, count, config);
    }
  }

  /** The budgets that whoever spends this has crossed, in the order of the configuration. */
  crossedFor(spender: Spender, config: Config): BudgetConfig[] {
    return config.cost.budgets.filter((budget) =>
      linesOf(budget).some((line) => {
        const key = countOf(line, spender, this.#deps.allows);
        if (key === undefined) return false;
        const counts = this.#counts.of(line, config.cost.timezone);
        return counts.liftedAt === undefined && counts.values.get(key)?.crossing !== undefined;
      }),
    );
  }

  views(config: Config): BudgetView[] {
    return allLines(config).flatMap((line) => toViews(line, this.#counts.of(line, config.cost.timezone), config.cost.timezone));
  }

  /** The rest of the day (and of the month) without this budget, on every instance. Undefined: there is no such budget. */
  async lift(id: string, config: Config): Promise<BudgetView | undefined> {
    const budget = config.cost.budgets.find((entry) => entry.id === id);
    if (budget === undefined) return undefined;
    const { timezone } = config.cost;
    const at = this.#deps.environment.now();
    const lines = linesOf(budget).map((line) => ({ line, counts: this.#counts.of(line, timezone) }));
    for (const { line, counts } of lines) {
      counts.liftedAt = at;
      this.#deps.log.warn({ budget: id, [line.period]: counts.period.name }, `a budget is lifted for the rest of the ${line.period}`);
      await this.#flags.lift(toMark(line, counts), at);
    }
    return lines.flatMap(({ line, counts }) => toViews(line, counts, timezone))[0];
  }

  /** Asks the stores: what everybody has spent, what is crossed and lifted. Never rejects. */
  refresh(config: Config): Promise<void> {
    this.#reading ??= this.#read(config)
      .catch((err: unknown) => this.#deps.log.debug({ err }, 'budgets could not be read; they go on by what this process has seen'))
      .finally(() => {
        this.#reading = undefined;
      });
    return this.#reading;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#stop.abort();
    await Promise.allSettled([...this.#notices, this.#reading, this.#polling]);
  }

  #judge(line: BudgetLine, counts: Counts, count: Count, config: Config): void {
    const { budget, period, limit } = line;
    const { value } = namesOf(line, count.key);
    // Users are nobody's business in logs.
    const who = line.scope === 'user' ? {} : { [line.scope]: value };
    const facts = { budget: budget.id, ...who, [period]: counts.period.name, usd: count.spent / NANO, limit_usd: line.usd };
    if (!count.warned && count.spent * 100 >= limit * budget.warn_percent) {
      count.warned = true;
      this.#deps.log.warn(facts, `a budget is used up to ${budget.warn_percent} %`);
    }
    if (count.crossing !== undefined || counts.liftedAt !== undefined || count.spent < limit) return;
    const crossing: Crossing = { at: this.#deps.environment.now(), spent: count.spent, notified: false };
    count.crossing = crossing;
    this.#crossed.inc({ budget: budget.id });
    this.#deps.log.warn({ ...facts, ...(budget.action === 'refuse' ? { action: 'refuse' } : { switch_to: budget.switch_to }) }, 'a budget is crossed');
    const mark = toMark(line, counts, count);
    this.#inBackground(
      this.#flags.claim(mark, crossing).then(async (first) => {
        if (first) await this.#notify(line, mark, count.key, crossing, config);
      }),
    );
  }

  async #notify(line: BudgetLine, mark: BudgetMark, key: string, crossing: Crossing, config: Config): Promise<void> {
    const { budget } = line;
    if (budget.notify === undefined) return;
    const { post, log, environment, firstPauseMs } = this.#deps;
    const notice = toNotice(line, namesOf(line, key), mark, crossing, config);
    const sending = { post, log, signal: this.#stop.signal, now: () => environment.now(), ...(firstPauseMs ? { firstPauseMs } : {}) };
    if (await deliver(notice, budget.notify, config, sending)) await this.#flags.notified(mark, crossing);
  }

  #inBackground(work: Promise<unknown>): void {
    const noted = work.catch((err: unknown) => this.#deps.log.warn({ err }, 'telling of a crossed budget failed')).finally(() => this.#notices.delete(noted));
    this.#notices.add(noted);
  }

  async #poll(config: Config): Promise<void> {
    if (config.cost.budgets.length === 0) return;
    const lines = allLines(config).map((line) => ({ line, counts: this.#counts.of(line, config.cost.timezone) }));
    const fresh = lines.some(({ counts }) => !counts.loaded);
    const { cold, hot, environment } = this.#deps;
    if (!fresh && cold.name === 'sqljs' && !hot.shared) return;
    const due = lines.some(({ line, counts }) => [...counts.values.values()].some(({ spent }) => spent * 2 >= line.limit)) ? READ_MS : READ_SELDOM_MS;
    if (fresh || (cold.name === 'postgres' && environment.now() - this.#readAt >= due)) await this.refresh(config);
    else await this.#readFlags(config).catch(() => undefined);
  }

  async #read(config: Config): Promise<void> {
    const { ledger, cold, environment, allows } = this.#deps;
    const { timezone } = config.cost;
    this.#readAt = environment.now();
    const lines = allLines(config);
    await ledger.exclusive(async () => {
      const periods = new Map(lines.map((line) => [line, this.#counts.of(line, timezone).period]));
      const spending = await readSpending(cold, ledger, periods, allows);
      for (const [line, sums] of spending) {
        const counts = this.#counts.of(line, timezone);
        if (counts.period.name !== periods.get(line)?.name) continue;
        for (const count of counts.values.values()) count.spent = sums.get(count.key) ?? 0;
        for (const [key, spent] of sums) {
          const count = this.#counts.get(counts, line, key);
          if (count) count.spent = spent;
        }
      }
    });
    await this.#readFlags(config);
    for (const line of lines) {
      const counts = this.#counts.of(line, timezone);
      for (const count of counts.values.values()) this.#judge(line, counts, count, config);
    }
  }

  async #readFlags(config: Config): Promise<void> {
    for (const line of allLines(config)) {
      const counts = this.#counts.of(line, config.cost.timezone);
      const first = !counts.loaded;
      counts.liftedAt ??= await this.#flags.liftedAt(toMark(line, counts));
      for (const count of counts.values.values()) {
        // Of many users only those near their limit are asked for.
        if (count.crossing !== undefined || (line.each && count.spent * 2 < line.limit)) continue;
        const mark = toMark(line, counts, count);
        const crossing = await this.#flags.crossing(mark);
        if (crossing === undefined || count.crossing !== undefined) continue;
        count.crossing = crossing;
        if (first && this.#isOrphan(crossing)) this.#inBackground(this.#notify(line, mark, count.key, crossing, config));
      }
      counts.loaded = true;
    }
  }

  /** Claimed by a process that ended before its notice was taken. */
  #isOrphan({ notified, at }: Crossing): boolean {
    const alone = this.#deps.cold.name === 'sqljs' && !this.#deps.hot.shared;
    return !notified && (alone || this.#deps.environment.now() - at > ORPHAN_MS);
  }
}

function allLines(config: Config): BudgetLine[] {
  return config.cost.budgets.flatMap(linesOf);
}

function toMark({ budget, scope, pattern, limit }: BudgetLine, { period }: Counts, count?: Count): BudgetMark {
  // A service's one count has the plain name; all others say whose they are.
  const which = count === undefined || (scope === 'service' && count.key === '') ? '' : JSON.stringify([scope, count.key || pattern]);
  return { id: budget.id, period: period.name, until: period.to, limit, count: which };
}

function toNotice(
  { budget, scope, usd, period }: BudgetLine,
  names: { value: string; project?: string },
  mark: BudgetMark,
  crossing: Crossing,
  config: Config,
): BudgetNotice {
  return {
    event: 'budget_crossed',
    budget: budget.id,
    service: scope === 'service' ? names.value : null,
    ...(scope === 'service' ? {} : { [scope]: names.value, ...(names.project === undefined ? {} : { project: names.project }) }),
    day: period === 'day' ? mark.period : dayOf(crossing.at, config.cost.timezone),
    usd: crossing.spent / NANO,
    limit_usd: usd,
    switch_to: budget.switch_to ?? null,
    ...(budget.action === 'refuse' ? { action: 'refuse' as const } : {}),
    period,
  };
}

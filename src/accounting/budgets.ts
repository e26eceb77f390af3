import type { ColdStore, LedgerRow } from '../contracts/cold-store.ts';
import type { BudgetConfig, Config } from '../contracts/config.ts';
import type { ModelCall } from '../contracts/exchange.ts';
import type { HotStore } from '../contracts/hot-store.ts';
import type { Environment, Log, Metrics } from '../contracts/telemetry.ts';
import { type BudgetDay, BudgetFlags, type Crossing } from './budget-flags.ts';
import { type BudgetNotice, deliver, type PostJson } from './budget-notice.ts';
import { addDays, dayOf, startOfDay, toHour } from './calendar.ts';
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
interface State extends BudgetDay {
  /** Nano-dollars of the day, by everybody, as far as known. */
  spent: number;
  crossing: Crossing | undefined;
  liftedAt: number | undefined;
  warned: boolean;
  /** The stores have been asked. */
  loaded: boolean;
}
export interface BudgetView {
  id: string;
  service: string;
  day: string;
  timezone: string;
  state: 'open' | 'crossed' | 'lifted';
  usd_per_day: number;
  spent_usd: number;
  switch_to: string;
  crossed_at: string | null;
  lifted_at: string | null;
  /** When the next day begins, and with it the budget anew. */
  resets_at: string;
}

const NANO = 1_000_000_000;
const WARN_AT = 0.8;
const POLL_MS = 1_000;
/** Reading the day's sums of others costs a query: often only where a budget is half used. */
const READ_MS = 2_000;
const READ_SELDOM_MS = 10_000;
/** By then whoever claimed a notice has given up, or is gone. */
const ORPHAN_MS = 15 * 60_000;

/** `cost.budgets`: what services have spent today, and which of them have crossed their limit. */
export class Budgets {
  readonly #deps: BudgetDeps;
  readonly #flags: BudgetFlags;
  readonly #crossed;
  readonly #states = new Map<string, State>();
  readonly #stop = new AbortController();
  readonly #notices = new Set<Promise<unknown>>();
  #timer: NodeJS.Timeout | undefined;
  #reading: Promise<void> | undefined;
  #polling: Promise<void> | undefined;
  #readAt = 0;

  constructor(deps: BudgetDeps) {
    this.#deps = deps;
    this.#flags = new BudgetFlags(deps.cold, deps.hot);
    this.#crossed = deps.metrics.counter('hermes_budgets_crossed_total', 'Budgets that were crossed, as this process learned of it.', ['budget']);
  }

  /** Reads what the day has brought so far, and follows other instances from now on. Resolves when the state is known, or the stores are away. */
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
    if (call.shadow || !call.costNanoUsd) return;
    for (const budget of config.cost.budgets) {
      if (!this.#deps.allows([budget.service], call.service)) continue;
      const state = this.#stateOf(budget, config);
      if (dayOf(call.startedAt, config.cost.timezone) !== state.day) continue;
      state.spent += call.costNanoUsd;
      this.#judge(budget, state, config);
    }
  }

  /** The crossed budgets of a service, in the order of the configuration. */
  crossedFor(service: string, config: Config): BudgetConfig[] {
    return config.cost.budgets.filter((budget) => this.#deps.allows([budget.service], service) && isCrossed(this.#stateOf(budget, config)));
  }

  views(config: Config): BudgetView[] {
    return config.cost.budgets.map((budget) => this.#toView(budget, config));
  }

  /** The rest of the day without this budget, on every instance. Undefined: there is no such budget. */
  async lift(id: string, config: Config): Promise<BudgetView | undefined> {
    const budget = config.cost.budgets.find((entry) => entry.id === id);
    if (budget === undefined) return undefined;
    const state = this.#stateOf(budget, config);
    state.liftedAt = this.#deps.environment.now();
    this.#deps.log.warn({ budget: id, day: state.day }, 'a budget is lifted for the rest of the day');
    await this.#flags.lift(state, state.liftedAt);
    return this.#toView(budget, config);
  }

  /** Asks the stores: what everybody has spent today, what is crossed and lifted. Never rejects. */
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

  #stateOf({ id, usd_per_day }: BudgetConfig, config: Config): State {
    const day = dayOf(this.#deps.environment.now(), config.cost.timezone);
    const limit = Math.round(usd_per_day * NANO);
    let state = this.#states.get(id);
    if (state?.day !== day) {
      state = { id, day, limit, spent: 0, crossing: undefined, liftedAt: undefined, warned: false, loaded: false };
      this.#states.set(id, state);
    } else if (state.limit !== limit) {
      // Another limit is another line to cross; what was spent stays spent.
      Object.assign(state, { limit, crossing: undefined, warned: false, loaded: false });
    }
    return state;
  }

  #judge(budget: BudgetConfig, state: State, config: Config): void {
    const facts = { budget: budget.id, service: budget.service, day: state.day, usd: state.spent / NANO, limit_usd: budget.usd_per_day };
    if (!state.warned && state.spent >= WARN_AT * state.limit) {
      state.warned = true;
      this.#deps.log.warn(facts, `a budget is used up to ${Math.round(WARN_AT * 100)} %`);
    }
    if (state.crossing !== undefined || state.liftedAt !== undefined || state.spent < state.limit) return;
    const crossing: Crossing = { at: this.#deps.environment.now(), spent: state.spent, notified: false };
    state.crossing = crossing;
    this.#crossed.inc({ budget: budget.id });
    this.#deps.log.warn({ ...facts, switch_to: budget.switch_to }, 'a budget is crossed');
    const day = { id: state.id, day: state.day, limit: state.limit };
    this.#inBackground(
      this.#flags.claim(day, crossing).then(async (first) => {
        if (first) await this.#notify(budget, day, crossing, config);
      }),
    );
  }

  async #notify(budget: BudgetConfig, day: BudgetDay, crossing: Crossing, config: Config): Promise<void> {
    if (budget.notify === undefined) return;
    const { post, log, firstPauseMs } = this.#deps;
    const notice: BudgetNotice = {
      event: 'budget_crossed',
      budget: budget.id,
      service: budget.service,
      day: day.day,
      usd: crossing.spent / NANO,
      limit_usd: budget.usd_per_day,
      switch_to: budget.switch_to,
    };
    const taken = await deliver(notice, budget.notify, config, { post, log, signal: this.#stop.signal, ...(firstPauseMs ? { firstPauseMs } : {}) });
    if (taken) await this.#flags.notified(day, crossing);
  }

  #inBackground(work: Promise<unknown>): void {
    const noted = work.catch((err: unknown) => this.#deps.log.warn({ err }, 'telling of a crossed budget failed')).finally(() => this.#notices.delete(noted));
    this.#notices.add(noted);
  }

  async #poll(config: Config): Promise<void> {
    const { budgets } = config.cost;
    if (budgets.length === 0) return;
    const states = budgets.map((budget) => this.#stateOf(budget, config));
    const fresh = states.some(({ loaded }) => !loaded);
    const { cold, hot, environment } = this.#deps;
    if (!fresh && cold.name === 'sqljs' && !hot.shared) return;
    const due = states.some(({ spent, limit }) => spent * 2 >= limit) ? READ_MS : READ_SELDOM_MS;
    if (fresh || (cold.name === 'postgres' && environment.now() - this.#readAt >= due)) await this.refresh(config);
    else await this.#readFlags(config).catch(() => undefined);
  }

  async #read(config: Config): Promise<void> {
    const { ledger, cold, environment } = this.#deps;
    const { timezone, budgets } = config.cost;
    this.#readAt = environment.now();
    const day = dayOf(this.#readAt, timezone);
    const period = { from: toHour(startOfDay(day, timezone)), to: toHour(startOfDay(addDays(day, 1), timezone)) };
    await ledger.exclusive(async () => {
      const stored = await cold.readLedger({ ...period, by: ['service'], shadow: 'without' });
      const pending = [...ledger.pending()].filter(({ hour, shadow }) => !shadow && hour >= period.from && hour < period.to);
      for (const budget of budgets) {
        const state = this.#stateOf(budget, config);
        if (state.day === day) state.spent = this.#sum([...stored, ...pending], budget);
      }
    });
    await this.#readFlags(config);
    for (const budget of budgets) this.#judge(budget, this.#stateOf(budget, config), config);
  }

  #sum(rows: readonly LedgerRow[], { service }: BudgetConfig): number {
    return rows.reduce((sum, row) => (this.#deps.allows([service], row.service) ? sum + Number(row.cost_nano_usd) : sum), 0);
  }

  async #readFlags(config: Config): Promise<void> {
    for (const budget of config.cost.budgets) {
      const state = this.#stateOf(budget, config);
      const { crossing, liftedAt } = await this.#flags.read(state);
      const first = !state.loaded;
      state.loaded = true;
      state.liftedAt ??= liftedAt;
      if (crossing === undefined || state.crossing !== undefined) continue;
      state.crossing = crossing;
      if (first && this.#isOrphan(crossing)) this.#inBackground(this.#notify(budget, { id: state.id, day: state.day, limit: state.limit }, crossing, config));
    }
  }

  /** Claimed by a process that ended before its notice was taken. */
  #isOrphan({ notified, at }: Crossing): boolean {
    const alone = this.#deps.cold.name === 'sqljs' && !this.#deps.hot.shared;
    return !notified && (alone || this.#deps.environment.now() - at > ORPHAN_MS);
  }

  #toView(budget: BudgetConfig, config: Config): BudgetView {
    const { timezone } = config.cost;
    const state = this.#stateOf(budget, config);
    const iso = (at: number | undefined): string | null => (at === undefined ? null : new Date(at).toISOString());
    return {
      id: budget.id,
      service: budget.service,
      day: state.day,
      timezone,
      state: state.liftedAt !== undefined ? 'lifted' : isCrossed(state) ? 'crossed' : 'open',
      usd_per_day: budget.usd_per_day,
      spent_usd: Number((state.spent / NANO).toFixed(9)),
      switch_to: budget.switch_to,
      crossed_at: iso(state.crossing?.at),
      lifted_at: iso(state.liftedAt),
      resets_at: new Date(startOfDay(addDays(state.day, 1), timezone)).toISOString(),
    };
  }
}

function isCrossed({ crossing, liftedAt }: State): boolean {
  return crossing !== undefined && liftedAt === undefined;
}

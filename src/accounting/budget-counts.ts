import type { Environment, Log } from '../contracts/telemetry.ts';
import type { Crossing } from './budget-flags.ts';
import { type BudgetLine, type Period, periodAt } from './budget-lines.ts';

/** One sum that is held against a line's limit. */
export interface Count {
  key: string;
  /** Nano-dollars of the period, by everybody, as far as known. */
  spent: number;
  crossing: Crossing | undefined;
  warned: boolean;
}
/** What is known of a line in the period that runs. */
export interface Counts {
  period: Period;
  limit: number;
  liftedAt: number | undefined;
  /** The stores have been asked. */
  loaded: boolean;
  values: Map<string, Count>;
}

/** Users come from requests: their number must have an end. */
const MOST_VALUES = 100_000;

/** The running sums of every line, thrown away when their period is over. */
export class BudgetCounts {
  readonly #environment: Environment;
  readonly #log: Log;
  readonly #mostValues: number;
  readonly #byLine = new Map<string, Counts>();

  constructor(environment: Environment, log: Log, mostValues = MOST_VALUES) {
    this.#environment = environment;
    this.#log = log;
    this.#mostValues = mostValues;
  }

  of(line: BudgetLine, timezone: string): Counts {
    const now = this.#environment.now();
    let counts = this.#byLine.get(line.key);
    if (counts === undefined || now < counts.period.from || now >= counts.period.to) {
      counts = { period: periodAt(line.period, now, timezone), limit: line.limit, liftedAt: undefined, loaded: false, values: new Map() };
      if (!line.each) this.get(counts, line, '');
      this.#byLine.set(line.key, counts);
    } else if (counts.limit !== line.limit) {
      // Another limit is another line to cross; what was spent stays spent.
      Object.assign(counts, { limit: line.limit, loaded: false });
      for (const count of counts.values.values()) Object.assign(count, { crossing: undefined, warned: false });
    }
    return counts;
  }

  /** Undefined: there are too many to tell one more apart. */
  get(counts: Counts, { budget }: BudgetLine, key: string): Count | undefined {
    let count = counts.values.get(key);
    if (count === undefined) {
      if (counts.values.size >= this.#mostValues) return undefined;
      count = { key, spent: 0, crossing: undefined, warned: false };
      counts.values.set(key, count);
      if (counts.values.size === this.#mostValues) {
        this.#log.error({ budget: budget.id, values: counts.values.size }, 'a budget has too many different spenders: further ones are not held to it');
      }
    }
    return count;
  }
}

import { createHash } from 'node:crypto';
import type { ColdStore } from '../contracts/cold-store.ts';
import type { HotStore } from '../contracts/hot-store.ts';
import { isRecord } from '../wire/json.ts';

/** What instances, and a restart, must know of a budget's day or month. */
export interface Crossing {
  at: number;
  /** Nano-dollars spent then. */
  spent: number;
  notified: boolean;
}
export interface BudgetMark {
  id: string;
  /** A day, or a month. */
  period: string;
  /** Unix milliseconds: when it is over. */
  until: number;
  /** Nano-dollars; a limit that is changed within the period is another one to cross. */
  limit: number;
  /** Which of several counts of a budget it is; empty: the only one. May hold names. */
  count: string;
}

/** Marks are of no use soon after their period. */
const KEEP_MS = 2 * 86_400_000;

/** Marks of crossed and lifted budgets: in the cold store for restarts, in a shared hot store for instances that share no cold one. */
export class BudgetFlags {
  readonly #cold: Pick<ColdStore, 'getValue' | 'setValue'>;
  readonly #hot: Pick<HotStore, 'get' | 'set'> | undefined;

  constructor(cold: Pick<ColdStore, 'getValue' | 'setValue'>, hot: Pick<HotStore, 'get' | 'set' | 'shared'>) {
    this.#cold = cold;
    this.#hot = hot.shared ? hot : undefined;
  }

  /** True for one caller of all instances: the first. A store that is away does not hinder it. */
  async claim(mark: BudgetMark, crossing: Crossing): Promise<boolean> {
    const [key, value] = [crossedKey(mark), JSON.stringify(crossing)];
    const hot = await this.#hot?.set(key, value, keepMs(mark, crossing.at), true).catch(() => undefined);
    const cold = await this.#cold.setValue(key, value, crossing.at + keepMs(mark, crossing.at), true).catch(() => undefined);
    return hot !== false && cold !== false;
  }

  async notified(mark: BudgetMark, crossing: Crossing): Promise<void> {
    await this.#set(crossedKey(mark), JSON.stringify({ ...crossing, notified: true }), crossing.at, keepMs(mark, crossing.at));
  }

  async lift(mark: Omit<BudgetMark, 'count'>, at: number): Promise<void> {
    await this.#set(liftedKey(mark), String(at), at, keepMs(mark, at));
  }

  async crossing(mark: BudgetMark): Promise<Crossing | undefined> {
    const text = await this.#get(crossedKey(mark));
    return text === undefined ? undefined : parseCrossing(text);
  }

  async liftedAt(mark: Omit<BudgetMark, 'count'>): Promise<number | undefined> {
    const text = await this.#get(liftedKey(mark));
    return text === undefined ? undefined : Number(text);
  }

  async #set(key: string, value: string, at: number, keepMs: number): Promise<void> {
    await Promise.allSettled([this.#cold.setValue(key, value, at + keepMs), this.#hot?.set(key, value, keepMs)]);
  }

  /** Rejects only when no store answers. */
  async #get(key: string): Promise<string | undefined> {
    const hot = await this.#hot?.get(key).catch(() => undefined);
    return hot ?? this.#cold.getValue(key);
  }
}

function keepMs({ until }: { until: number }, at: number): number {
  return Math.max(0, until - at) + KEEP_MS;
}
/** Names of users are no keys: a digest is as long for each, and tells nobody anything. */
function crossedKey({ period, id, limit, count }: BudgetMark): string {
  const which = count === '' ? '' : `:${createHash('sha256').update(count).digest('hex').slice(0, 32)}`;
  return `budget:${period}:crossed:${limit}:${encodeURIComponent(id)}${which}`;
}
function liftedKey({ period, id }: Omit<BudgetMark, 'count'>): string {
  return `budget:${period}:lifted:${encodeURIComponent(id)}`;
}

function parseCrossing(text: string): Crossing | undefined {
  const value: unknown = JSON.parse(text);
  return isRecord(value) ? { at: Number(value.at), spent: Number(value.spent), notified: value.notified === true } : undefined;
}

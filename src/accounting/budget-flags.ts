import type { ColdStore } from '../contracts/cold-store.ts';
import type { HotStore } from '../contracts/hot-store.ts';
import { isRecord } from '../wire/json.ts';

/** What instances, and a restart, must know of a budget's day. */
export interface Crossing {
  at: number;
  /** Nano-dollars spent then. */
  spent: number;
  notified: boolean;
}
export interface BudgetDay {
  id: string;
  day: string;
  /** Nano-dollars; a limit that is changed within the day is another one to cross. */
  limit: number;
}

/** A day's marks are of no use after the next. */
const KEEP_MS = 3 * 86_400_000;

/** Marks of crossed and lifted budgets: in the cold store for restarts, in a shared hot store for instances that share no cold one. */
export class BudgetFlags {
  readonly #cold: Pick<ColdStore, 'getValue' | 'setValue'>;
  readonly #hot: Pick<HotStore, 'get' | 'set'> | undefined;

  constructor(cold: Pick<ColdStore, 'getValue' | 'setValue'>, hot: Pick<HotStore, 'get' | 'set' | 'shared'>) {
    this.#cold = cold;
    this.#hot = hot.shared ? hot : undefined;
  }

  /** True for one caller of all instances: the first. A store that is away does not hinder it. */
  async claim(budget: BudgetDay, crossing: Crossing): Promise<boolean> {
    const [key, value] = [crossedKey(budget), JSON.stringify(crossing)];
    const hot = await this.#hot?.set(key, value, KEEP_MS, true).catch(() => undefined);
    const cold = await this.#cold.setValue(key, value, crossing.at + KEEP_MS, true).catch(() => undefined);
    return hot !== false && cold !== false;
  }

  async notified(budget: BudgetDay, crossing: Crossing): Promise<void> {
    await this.#set(crossedKey(budget), JSON.stringify({ ...crossing, notified: true }), crossing.at);
  }

  async lift(budget: BudgetDay, at: number): Promise<void> {
    await this.#set(liftedKey(budget), String(at), at);
  }

  async read(budget: BudgetDay): Promise<{ crossing: Crossing | undefined; liftedAt: number | undefined }> {
    const [crossing, lifted] = await Promise.all([this.#get(crossedKey(budget)), this.#get(liftedKey(budget))]);
    return { crossing: crossing === undefined ? undefined : parseCrossing(crossing), liftedAt: lifted === undefined ? undefined : Number(lifted) };
  }

  async #set(key: string, value: string, at: number): Promise<void> {
    await Promise.allSettled([this.#cold.setValue(key, value, at + KEEP_MS), this.#hot?.set(key, value, KEEP_MS)]);
  }

  /** Rejects only when no store answers. */
  async #get(key: string): Promise<string | undefined> {
    const hot = await this.#hot?.get(key).catch(() => undefined);
    return hot ?? this.#cold.getValue(key);
  }
}

function crossedKey({ day, id, limit }: BudgetDay): string {
  return `budget:${day}:crossed:${limit}:${encodeURIComponent(id)}`;
}
function liftedKey({ day, id }: BudgetDay): string {
  return `budget:${day}:lifted:${encodeURIComponent(id)}`;
}

function parseCrossing(text: string): Crossing | undefined {
  const value: unknown = JSON.parse(text);
  return isRecord(value) ? { at: Number(value.at), spent: Number(value.spent), notified: value.notified === true } : undefined;
}

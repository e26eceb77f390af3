import type { ColdStore, LedgerRow } from '../contracts/cold-store.ts';
import { type BudgetLine, countOf, type Period } from './budget-lines.ts';
import { toHour } from './calendar.ts';
import type { Ledger } from './ledger.ts';

/** What each line's counts come to in their period, by the books: stored, and on their way. To be called while nothing is being written. */
export async function readSpending(
  cold: Pick<ColdStore, 'readLedger'>,
  ledger: Pick<Ledger, 'pending'>,
  periods: ReadonlyMap<BudgetLine, Period>,
  allows: (patterns: readonly string[], name: string) => boolean,
): Promise<Map<BudgetLine, Map<string, number>>> {
  // Lines of the same scope and period share a query; it adds up within what they tell apart, and no finer.
  const queries = new Map<string, LedgerRow[]>();
  for (const [line, period] of periods) {
    const name = queryOf(line, period);
    if (queries.has(name)) continue;
    const by = line.scope === 'user' ? ['project', 'user'] : [line.scope];
    queries.set(name, await cold.readLedger({ from: toHour(period.from), to: toHour(period.to), by, shadow: 'without' }));
  }
  // Not before the last query: a call may have come during any of them.
  const pending = [...ledger.pending()].filter(({ shadow }) => !shadow);
  const spending = new Map<BudgetLine, Map<string, number>>();
  for (const [line, period] of periods) {
    const [from, to] = [toHour(period.from), toHour(period.to)];
    const sums = new Map<string, number>();
    for (const row of [...(queries.get(queryOf(line, period)) ?? []), ...pending.filter(({ hour }) => hour >= from && hour < to)]) {
      const key = countOf(line, row, allows);
      if (key !== undefined) sums.set(key, (sums.get(key) ?? 0) + Number(row.cost_nano_usd));
    }
    spending.set(line, sums);
  }
  return spending;
}

function queryOf({ scope }: BudgetLine, { name }: Period): string {
  return `${scope} ${name}`;
}

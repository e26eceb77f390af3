import type { Count, Counts } from './budget-counts.ts';
import { type BudgetLine, type BudgetScope, namesOf } from './budget-lines.ts';
import { dayOf } from './calendar.ts';

/** A budget as operators see it: one for a day's limit, one for a month's; where each distinct value has its own, one for each of those that spent most. */
export interface BudgetView {
  id: string;
  scope: BudgetScope;
  /** Whose: a name or a pattern. Null: each its own, and nobody has spent anything. */
  value: string | null;
  service: string | null;
  project?: string;
  day: string;
  period: 'day' | 'month';
  timezone: string;
  state: 'open' | 'crossed' | 'lifted';
  action: 'switch' | 'refuse';
  usd_per_day: number | null;
  usd_per_month: number | null;
  spent_usd: number;
  switch_to: string | null;
  crossed_at: string | null;
  lifted_at: string | null;
  /** When the next day or month begins, and with it the budget anew. */
  resets_at: string;
}

const NANO = 1_000_000_000;
const MOST_SHOWN = 20;

export function toViews(line: BudgetLine, counts: Counts, timezone: string): BudgetView[] {
  const all = [...counts.values.values()].sort((a, b) => b.spent - a.spent);
  return all.length === 0 ? [toView(line, counts, timezone, undefined)] : all.slice(0, MOST_SHOWN).map((count) => toView(line, counts, timezone, count));
}

function toView(line: BudgetLine, { period, liftedAt }: Counts, timezone: string, count: Count | undefined): BudgetView {
  const { budget, scope } = line;
  const iso = (at: number | undefined): string | null => (at === undefined ? null : new Date(at).toISOString());
  const names = count && namesOf(line, count.key);
  return {
    id: budget.id,
    scope,
    value: names?.value ?? null,
    service: scope === 'service' ? (names?.value ?? null) : null,
    ...(names?.project === undefined ? {} : { project: names.project }),
    day: line.period === 'day' ? period.name : dayOf(period.from, timezone),
    period: line.period,
    timezone,
    state: liftedAt !== undefined ? 'lifted' : count?.crossing !== undefined ? 'crossed' : 'open',
    action: budget.action,
    usd_per_day: line.period === 'day' ? line.usd : null,
    usd_per_month: line.period === 'month' ? line.usd : null,
    spent_usd: Number(((count?.spent ?? 0) / NANO).toFixed(9)),
    switch_to: budget.switch_to ?? null,
    crossed_at: iso(count?.crossing?.at),
    lifted_at: iso(liftedAt),
    resets_at: new Date(period.to).toISOString(),
  };
}

import type { BudgetConfig } from '../contracts/config.ts';
import { addDays, dayOf, startOfDay } from './calendar.ts';

export type BudgetScope = 'service' | 'project' | 'user' | 'key';
/** Whose money a call is: of the call itself, or of the request that is about to make one. */
export interface Spender {
  service: string;
  project: string;
  user?: string | undefined;
  key: string;
}
/** One limit of a budget: a day's, or a month's. */
export interface BudgetLine {
  budget: BudgetConfig;
  scope: BudgetScope;
  pattern: string;
  /** One count for each distinct value instead of one for all. */
  each: boolean;
  period: 'day' | 'month';
  usd: number;
  /** Nano-dollars. */
  limit: number;
  /** Tells lines apart over reloads. */
  key: string;
}
/** A day (`2026-11-30`) or a month (`2026-11`), and its bounds in Unix milliseconds. */
export interface Period {
  name: string;
  from: number;
  to: number;
}

const SCOPES = ['service', 'project', 'user', 'key'] as const;
const NANO = 1_000_000_000;

const known = new WeakMap<BudgetConfig, BudgetLine[]>();
/** The day's line first. */
export function linesOf(budget: BudgetConfig): BudgetLine[] {
  let lines = known.get(budget);
  if (lines === undefined) {
    lines = makeLines(budget);
    known.set(budget, lines);
  }
  return lines;
}

function makeLines(budget: BudgetConfig): BudgetLine[] {
  const scope = SCOPES.find((name) => budget[name] !== undefined) ?? 'service';
  const pattern = budget[scope] ?? '';
  const amounts = { day: budget.usd_per_day, month: budget.usd_per_month };
  return (['day', 'month'] as const).flatMap((period) => {
    const usd = amounts[period];
    if (usd === undefined) return [];
    const key = JSON.stringify([budget.id, period, scope, pattern]);
    return [{ budget, scope, pattern, each: pattern === '*', period, usd, limit: Math.round(usd * NANO), key }];
  });
}

/** The count that a spender's money goes to; undefined: the line does not concern it. Users are told apart within their project. */
export function countOf(
  { scope, pattern, each }: BudgetLine,
  spender: Spender,
  allows: (patterns: readonly string[], name: string) => boolean,
): string | undefined {
  const value = spender[scope];
  if (value === undefined || value === '') return undefined;
  if (!each) return allows([pattern], value) ? '' : undefined;
  return scope === 'user' ? JSON.stringify([spender.project, value]) : value;
}

/** What a count is called; a project only for users that are told apart by it. */
export function namesOf({ scope, pattern, each }: BudgetLine, count: string): { value: string; project?: string } {
  if (!each) return { value: pattern };
  if (scope !== 'user') return { value: count };
  const [project, value] = JSON.parse(count) as [string, string];
  return { value, project };
}

export function periodAt(kind: 'day' | 'month', at: number, timezone: string): Period {
  const day = dayOf(at, timezone);
  if (kind === 'day') return { name: day, from: startOfDay(day, timezone), to: startOfDay(addDays(day, 1), timezone) };
  const first = `${day.slice(0, 7)}-01`;
  // Any 32 days after the first of a month are in the next one.
  const next = `${addDays(first, 32).slice(0, 7)}-01`;
  return { name: day.slice(0, 7), from: startOfDay(first, timezone), to: startOfDay(next, timezone) };
}
export function periodNameAt(kind: 'day' | 'month', at: number, timezone: string): string {
  return dayOf(at, timezone).slice(0, kind === 'day' ? 10 : 7);
}

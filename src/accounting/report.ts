import type { ColdStore, LedgerRow } from '../contracts/cold-store.ts';
import { LEDGER_COUNTS, type LedgerCounts, toLedgerCounts } from '../contracts/ledger-counts.ts';
import { dayOf } from './calendar.ts';
import { type Group, type ReportQuery, toHours } from './report-query.ts';

export interface Sums extends LedgerCounts {
  cost_nano_usd: bigint;
}
export interface ReportRow extends Sums {
  /** The values of `by`, in its order. */
  group: Partial<Record<Group, string | boolean>>;
}
export interface Report {
  query: ReportQuery;
  rows: ReportRow[];
  /** Of all rows, also of those that `top` leaves out. */
  total: Sums;
}

/** What was spent in a period: rows in order of time when they are hours or days, else the dearest first. */
export async function readReport(cold: Pick<ColdStore, 'readLedger'>, query: ReportQuery, timezone: string): Promise<Report> {
  const columns = [...new Set(query.by.map((group) => (group === 'day' ? 'hour' : group)))];
  const lines = await cold.readLedger({ ...toHours(query), by: columns, shadow: query.shadow });
  const rows = new Map<string, ReportRow>();
  const total = emptySums();
  for (const line of lines) {
    const group = toGroup(line, query.by, timezone);
    const key = JSON.stringify(Object.values(group));
    let row = rows.get(key);
    if (row === undefined) {
      row = { group, ...emptySums() };
      rows.set(key, row);
    }
    add(row, line);
    add(total, line);
  }
  const sorted = [...rows.values()].sort(isTime(query.by[0]) && query.top === undefined ? byTime(query.by) : byCost);
  return { query, rows: sorted.slice(0, query.top), total };
}

function emptySums(): Sums {
  return { ...toLedgerCounts(() => 0), cost_nano_usd: 0n };
}

function add(sums: Sums, line: LedgerRow): void {
  for (const name of LEDGER_COUNTS) sums[name] += line[name];
  sums.cost_nano_usd += line.cost_nano_usd;
}

function toGroup(line: LedgerRow, by: readonly Group[], timezone: string): ReportRow['group'] {
  return Object.fromEntries(by.map((group) => [group, group === 'day' ? dayOf(Date.parse(line.hour), timezone) : line[group]]));
}

const isTime = (group: Group | undefined): boolean => group === 'hour' || group === 'day';

/** In order of time; the dearest first within it. */
function byTime(by: readonly Group[]): (a: ReportRow, b: ReportRow) => number {
  const [first = 'hour'] = by;
  return (a, b) => compare(String(a.group[first]), String(b.group[first])) || byCost(a, b);
}

function byCost(a: ReportRow, b: ReportRow): number {
  if (a.cost_nano_usd !== b.cost_nano_usd) return a.cost_nano_usd > b.cost_nano_usd ? -1 : 1;
  return b.calls - a.calls || compare(JSON.stringify(a.group), JSON.stringify(b.group));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

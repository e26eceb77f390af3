import { LEDGER_COUNTS } from '../contracts/ledger-counts.ts';
import { parseJson } from '../wire/json.ts';
import type { Report, ReportRow, Sums } from './report.ts';

const NANO = 1_000_000_000n;
const SPENT = LEDGER_COUNTS.filter((name) => name !== 'saved_tokens');

/** Integer nano-dollars in dollars, exact to the last digit: `0.000000042`. */
export function toDollars(nano: bigint): string {
  const [sign, positive] = nano < 0n ? ['-', -nano] : ['', nano];
  return `${sign}${positive / NANO}.${String(positive % NANO).padStart(9, '0')}`;
}

/** As a JSON number: beyond 2^53 in the form that keeps its digits when it is written by `stringifyJson`. */
function toNumber(value: bigint): unknown {
  return parseJson(String(value));
}

function toJsonSums({ cost_nano_usd, ...counts }: Sums): Record<string, unknown> {
  return { ...counts, cost_nano_usd: toNumber(cost_nano_usd), cost_usd: Number(toDollars(cost_nano_usd)) };
}

/** The body of `GET /admin/costs`. */
export function toJsonReport({ query, rows, total }: Report, timezone: string): Record<string, unknown> {
  return {
    from: new Date(query.from).toISOString(),
    to: new Date(query.to).toISOString(),
    timezone,
    by: query.by,
    shadow: query.shadow,
    rows: rows.map(({ group, ...sums }) => ({ ...group, ...toJsonSums(sums) })),
    total: toJsonSums(total),
  };
}

/** One line a row and no total: what adds the lines up gets the total. */
export function toCsv({ query, rows }: Report): string {
  // At the end: what reads columns by their place finds the older ones where they were.
  const header = [...query.by, ...SPENT, 'cost_nano_usd', 'cost_usd', 'saved_tokens'];
  const line = (row: ReportRow): string[] => [
    ...query.by.map((group) => toCell(String(row.group[group] ?? ''))),
    ...SPENT.map((count) => String(row[count])),
    String(row.cost_nano_usd),
    toDollars(row.cost_nano_usd),
    String(row.saved_tokens),
  ];
  return `${[header, ...rows.map(line)].map((cells) => cells.join(',')).join('\r\n')}\r\n`;
}

/** RFC 4180. Users name themselves: what a spreadsheet would take for a formula is marked as text. */
function toCell(text: string): string {
  const safe = /^([=@\t\r]|[+-](?![\d.]+$))/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

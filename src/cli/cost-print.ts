import type { Verified } from '../accounting/verify.ts';

/** As `GET /admin/costs` gives it. */
export interface CostAnswer {
  from: string;
  to: string;
  timezone: string;
  by: string[];
  rows: CostRow[];
  total: CostRow;
}
export interface CostRow {
  [group: string]: unknown;
  calls: number;
  failed_calls: number;
  estimated_calls: number;
  input_tokens: number;
  output_tokens: number;
  /** A gateway of before it was counted says nothing of it. */
  saved_tokens?: number;
  cost_usd: number;
}

const BAR = 20;
const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

const whole = (value: number): string => String(Math.round(value)).replaceAll(/\B(?=(\d{3})+$)/g, ',');
/** Cents matter for large sums, parts of them for small ones. */
const usd = (value: number): string => `$${value.toFixed(value !== 0 && Math.abs(value) < 1 ? 6 : 2)}`;

function bar(share: number): string {
  const eighths = Math.round(Math.max(0, Math.min(1, share)) * BAR * 8);
  return ('█'.repeat(Math.floor(eighths / 8)) + (EIGHTHS[eighths % 8] ?? '')).padEnd(BAR);
}

/** Against the period before: `+12 %`, `new`, or nothing where there is nothing to compare with. */
function change(now: number, before: number | undefined): string {
  if (before === undefined || before === 0) return now > 0 ? 'new' : '';
  const percent = Math.round((100 * (now - before)) / before);
  return `${percent > 0 ? '+' : ''}${percent} %`;
}

/** The report as a table with bars, each row beside the same one of the day before. */
export function printCosts(answer: CostAnswer, before: CostAnswer | undefined): string {
  const shift = before === undefined ? 0 : Date.parse(answer.from) - Date.parse(before.from);
  const costsBefore = new Map(before?.rows.map((row) => [keyOf(row, answer.by, shift), row.cost_usd]));
  // Shown where there is an answer cache that has saved anything.
  const saves = Boolean(answer.total.saved_tokens);
  const header = [
    ...answer.by,
    'calls',
    'failed',
    'tokens in',
    'tokens out',
    ...(saves ? ['saved'] : []),
    'cost',
    'share',
    '',
    ...(before ? ['day before'] : []),
  ];
  const line = (names: string[], row: CostRow, earlier: number | undefined, share: number): string[] => [
    ...names,
    whole(row.calls),
    whole(row.failed_calls),
    whole(row.input_tokens),
    whole(row.output_tokens),
    ...(saves ? [whole(row.saved_tokens ?? 0)] : []),
    usd(row.cost_usd),
    `${(100 * share).toFixed(1)} %`,
    bar(share),
    ...(before ? [change(row.cost_usd, earlier)] : []),
  ];
  const shareOf = (row: CostRow): number => (answer.total.cost_usd > 0 ? row.cost_usd / answer.total.cost_usd : 0);
  const body = answer.rows.map((row) =>
    line(
      answer.by.map((name) => String(row[name] ?? '') || '–'),
      row,
      costsBefore.get(keyOf(row, answer.by, 0)),
      shareOf(row),
    ),
  );
  const total = line(
    answer.by.map((_, index) => (index === 0 ? 'total' : '')),
    answer.total,
    before?.total.cost_usd,
    answer.total.cost_usd > 0 ? 1 : 0,
  );
  const texts = new Set([...answer.by.keys(), header.indexOf('', answer.by.length)]);
  const estimated = answer.total.estimated_calls;
  return [
    `${answer.from} to ${answer.to} (${answer.timezone})`,
    '',
    ...toTable([header, ...body, total], texts),
    ...(estimated > 0 ? ['', `${whole(estimated)} calls are estimated: their upstream sent no usage.`] : []),
    '',
  ].join('\n');
}

/** Hours of the day before are compared with the same hours of this one. */
function keyOf(row: CostRow, by: readonly string[], shift: number): string {
  return JSON.stringify(
    by.map((name) => {
      const value = row[name];
      if (shift === 0 || typeof value !== 'string') return value;
      if (name === 'hour') return `${new Date(Date.parse(value) + shift).toISOString().slice(0, 16)}Z`;
      return name === 'day' ? new Date(Date.parse(value) + Math.round(shift / 86_400_000) * 86_400_000).toISOString().slice(0, 10) : value;
    }),
  );
}

/** Columns in line; those of `texts` to the left. */
export function toTable(rows: readonly (readonly string[])[], texts: ReadonlySet<number>): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) => (texts.has(column) ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  ')
      .trimEnd(),
  );
}

export function printVerified(rows: readonly Verified[], period: { from: string; to: string } | undefined): string {
  const header = ['model', '', 'requests', 'input', 'cached', 'output', ''];
  const lines = rows.flatMap(({ model, theirs, ours, agrees }) => [
    [model, 'provider', count(theirs?.requests), count(theirs?.input), count(theirs?.cached), count(theirs?.output), agrees ? 'agrees' : 'differs'],
    [
      '',
      'hermes',
      count(ours?.calls),
      count(ours?.input),
      count(ours?.cached),
      count(ours?.output),
      ours && ours.estimatedCalls > 0 ? `${ours.estimatedCalls} estimated` : '',
    ],
  ]);
  return [period ? `${period.from} to ${period.to} (UTC)` : 'all that is booked', '', ...toTable([header, ...lines], new Set([0, 1, 6])), ''].join('\n');
}
const count = (value: number | undefined): string => (value === undefined ? '–' : whole(value));

import type { AdminReply } from '../contracts/admin.ts';
import type { ColdStore } from '../contracts/cold-store.ts';
import { HermesError } from '../contracts/errors.ts';
import { readReport } from './report.ts';
import { toCsv, toJsonReport } from './report-format.ts';
import { parseReportQuery } from './report-query.ts';

/** `GET /admin/costs`, and the same offline: a report for a URL's query. Throws `invalid_value` naming the field. */
export async function costReply(cold: Pick<ColdStore, 'readLedger'>, query: URLSearchParams, timezone: string, now: number): Promise<AdminReply> {
  const format = query.get('format') ?? 'json';
  if (format !== 'json' && format !== 'csv') throw new HermesError('invalid_value', "'format' is json or csv.", { param: 'format' });
  const report = await readReport(cold, parseReportQuery(query, timezone, now), timezone);
  if (format === 'csv') return { contentType: 'text/csv; charset=utf-8', body: toCsv(report) };
  return { body: toJsonReport(report, timezone) };
}

import { HermesError } from '../contracts/errors.ts';
import { addDays, dayOf, isDay, startOfDay, toHour } from './calendar.ts';

export const GROUPS = ['hour', 'day', 'project', 'service', 'user', 'session', 'key', 'route', 'model', 'upstream', 'shadow'] as const;
export type Group = (typeof GROUPS)[number];

export interface ReportQuery {
  /** Moments, Unix milliseconds: `from <= hour < to`. */
  from: number;
  to: number;
  by: readonly Group[];
  top: number | undefined;
  shadow: 'without' | 'with' | 'only';
}

/** Before every ledger, and after. */
const EVER = Date.parse('1970-01-01T00:00:00Z');
const NEVER = Date.parse('9999-12-31T00:00:00Z');
const MOST_GROUPS = 6;

function refuse(param: string, message: string): never {
  throw new HermesError('invalid_value', message, { param });
}

/** `day` or `from` and `to`, `by`, `top`, `shadow`, as in a URL. Throws `invalid_value` naming the field. Default: today, by service. */
export function parseReportQuery(query: URLSearchParams, timezone: string, now: number): ReportQuery {
  return { ...toPeriod(query, timezone, now), by: toGroups(query.get('by')), top: toTop(query.get('top')), shadow: toShadow(query.get('shadow')) };
}

/** `today`, `yesterday` or a date, as a date of the zone. */
export function toDay(text: string, timezone: string, now: number): string {
  const today = dayOf(now, timezone);
  if (text === 'today') return today;
  if (text === 'yesterday') return addDays(today, -1);
  if (!isDay(text)) refuse('day', `'day' is today, yesterday or a date like ${today}.`);
  return text;
}

function toPeriod(query: URLSearchParams, timezone: string, now: number): { from: number; to: number } {
  const [day, from, to] = ['day', 'from', 'to'].map((name) => query.get(name)?.trim() || undefined);
  if (day !== undefined && (from !== undefined || to !== undefined)) refuse('day', "Give either 'day', or 'from' and 'to'.");
  if (from === undefined && to === undefined) {
    const one = toDay(day ?? 'today', timezone, now);
    return { from: startOfDay(one, timezone), to: startOfDay(addDays(one, 1), timezone) };
  }
  const period = { from: from === undefined ? EVER : toMoment('from', from, timezone, 0), to: to === undefined ? NEVER : toMoment('to', to, timezone, 1) };
  if (period.from >= period.to) refuse('to', "'to' must be after 'from'.");
  return period;
}

/** A date is the whole day, the last one included; anything finer is a moment. */
function toMoment(param: 'from' | 'to', text: string, timezone: string, days: 0 | 1): number {
  if (isDay(text)) return startOfDay(addDays(text, days), timezone);
  const moment = /^\d{10,}$/.test(text) ? Number(text) : /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(moment) || moment < EVER || moment > NEVER)
    refuse(param, `'${param}' is a date like 2026-11-30, a time like 2026-11-30T17:00Z, or Unix milliseconds.`);
  return moment;
}

function toGroups(text: string | null): Group[] {
  const names = (text ?? 'service')
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '');
  const groups: Group[] = [];
  for (const name of new Set(names)) {
    const group = GROUPS.find((known) => known === name);
    if (group === undefined) refuse('by', `'by' is a list of ${GROUPS.join(', ')}; "${name.slice(0, 40)}" is none of them.`);
    groups.push(group);
  }
  if (groups.length > MOST_GROUPS) refuse('by', `'by' takes up to ${MOST_GROUPS} of ${GROUPS.join(', ')}.`);
  return groups;
}

function toTop(text: string | null): number | undefined {
  if (text === null || text === '') return undefined;
  if (!/^[1-9]\d{0,8}$/.test(text)) refuse('top', "'top' is how many rows are shown: a whole number from 1.");
  return Number(text);
}

function toShadow(text: string | null): ReportQuery['shadow'] {
  if (text === null || text === '') return 'without';
  if (text !== 'only' && text !== 'with' && text !== 'without') refuse('shadow', "'shadow' is only, with or without.");
  return text;
}

/** Hours as the ledger writes them. A moment within an hour takes that hour in, as a beginning and as an end. */
export function toHours({ from, to }: Pick<ReportQuery, 'from' | 'to'>): { from: string; to: string } {
  return { from: toHour(from), to: toHour(to) };
}

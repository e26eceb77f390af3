import type { AdminReply, AdminRequest } from '../contracts/admin.ts';
import { HermesError } from '../contracts/errors.ts';
import { fromCursor, toCursor } from '../wire/cursor.ts';

/** One operator's route. `pattern` has `{name}` for a path segment, decoded. */
export interface AdminRoute {
  method: 'GET' | 'POST' | 'DELETE';
  pattern: string;
  handle(request: AdminRequest, params: Readonly<Record<string, string>>): Promise<AdminReply> | AdminReply;
}

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 1000;

/** The parameters of a path that fits the pattern; undefined when it does not. */
export function matchPath(pattern: string, path: string): Record<string, string> | undefined {
  const wanted = pattern.split('/');
  const given = path.split('/');
  if (wanted.length !== given.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, segment] of wanted.entries()) {
    const value = given[index] ?? '';
    const name = /^\{(\w+)\}$/.exec(segment)?.[1];
    if (name === undefined) {
      if (segment !== value) return undefined;
    } else {
      try {
        params[name] = decodeURIComponent(value);
      } catch {
        return undefined;
      }
    }
  }
  return params;
}

/** `?limit=` within bounds. Throws `invalid_value` for what is no number. */
export function limitOf(query: URLSearchParams): number {
  return Math.min(countOf(query, 'limit') ?? DEFAULT_LIMIT, MAX_LIMIT);
}

/** Where the page before ended. Throws `invalid_value` for what no page said: begun anew, a loop over pages would never end. */
export function cursorOf(query: URLSearchParams): string | undefined {
  const text = query.get('cursor') || undefined;
  if (text !== undefined && fromCursor(text) === undefined) throw noCursor();
  return text;
}
function noCursor(): HermesError {
  return new HermesError('invalid_value', "'cursor' must be a page's next_cursor.", { param: 'cursor' });
}

/** A page of a list that is at hand; without `?limit=` all the rest of it, for such lists are short. Throws `invalid_value`. */
export function pageOf<Row>(rows: readonly Row[], query: URLSearchParams): { data: Row[]; next_cursor: string | null } {
  const cursor = cursorOf(query);
  const [begin] = (cursor === undefined ? undefined : fromCursor(cursor)) ?? [0];
  if (typeof begin !== 'number' || !Number.isInteger(begin) || begin < 0) throw noCursor();
  const end = query.get('limit') ? begin + limitOf(query) : rows.length;
  return { data: rows.slice(begin, end), next_cursor: end < rows.length ? toCursor([end]) : null };
}

/** A whole number from 1. Throws `invalid_value`: a filter that is not understood would show everything. */
export function countOf(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text === '') return undefined;
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new HermesError('invalid_value', `'${name}' must be a whole number from 1.`, { param: name });
  return Number(text);
}

/** `?from=`, `?to=`: ISO 8601 or Unix milliseconds. Throws `invalid_value` for what is neither. */
export function timeOf(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text === '') return undefined;
  const time = /^\d+$/.test(text) ? Number(text) : Date.parse(text);
  if (Number.isNaN(time)) throw new HermesError('invalid_value', `'${name}' must be a time: 2026-12-01T08:00:00Z, or Unix milliseconds.`, { param: name });
  return time;
}

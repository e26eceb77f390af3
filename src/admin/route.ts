import type { AdminReply, AdminRequest } from '../contracts/admin.ts';

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

/** `?limit=` within bounds. */
export function limitOf(query: URLSearchParams): number {
  const limit = Number(query.get('limit') ?? DEFAULT_LIMIT);
  return Number.isInteger(limit) && limit > 0 ? Math.min(limit, MAX_LIMIT) : DEFAULT_LIMIT;
}

/** `?from=`, `?to=`: ISO 8601 or Unix milliseconds. */
export function timeOf(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text === '') return undefined;
  const time = /^\d+$/.test(text) ? Number(text) : Date.parse(text);
  return Number.isNaN(time) ? undefined : time;
}

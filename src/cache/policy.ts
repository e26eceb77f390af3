import { HermesError } from '../contracts/errors.ts';
import type { Exchange } from '../contracts/exchange.ts';

/** What this request allows. */
export interface Policy {
  /** A kept answer may be given. */
  read: boolean;
  /** Milliseconds that it may be old. */
  maxAgeMs: number;
  /** The request asked for it by itself, so that sessions and tools that only read are no hindrance. */
  opted: boolean;
  /** Server-side tools on offer; none of them has side effects. */
  tools: readonly string[];
}
/** The names of the server-side tools that would be on offer. */
export type OfferedTools = (exchange: Exchange) => readonly string[];

const MAX_AGE = /(?:^|[\s,])max-age\s*=\s*"?(\d{1,10})/;

/** Undefined: the cache has no part in this request. */
export function policyOf(exchange: Exchange, offered: OfferedTools): Policy | undefined {
  const { cache, tools: known } = exchange.config;
  if (!cache?.enabled || exchange.background) return undefined;
  const { headers, request, ask } = exchange;
  const wish = wishIn(headers);
  const control = headers['cache-control']?.toLowerCase() ?? '';
  const opted = wish === 'use';
  if (wish === 'off' || control.includes('no-store') || !(opted || request.temperature === 0)) return undefined;
  if (!opted && (ask.sessionId !== undefined || actsElsewhere(request))) return undefined;
  const tools = offered(exchange);
  if (tools.some((name) => known.find(({ id }) => id === name)?.side_effects !== false)) return undefined;
  const age = MAX_AGE.exec(control)?.[1];
  return { read: !control.includes('no-cache'), maxAgeMs: age === undefined ? Number.POSITIVE_INFINITY : Number(age) * 1000, opted, tools };
}

function wishIn(headers: Readonly<Record<string, string>>): 'use' | 'off' | undefined {
  const wish = headers['x-hermes-cache']?.trim().toLowerCase();
  if (wish === undefined || wish === '' || wish === 'use' || wish === 'off') return wish || undefined;
  throw new HermesError('invalid_value', "'x-hermes-cache' must be use or off.", { param: 'x-hermes-cache' });
}

/** The client's own functions, and what vendors do by themselves while answering: nobody knows what they change, or what has changed since. */
function actsElsewhere(request: Exchange['request']): boolean {
  return Boolean(request.tools?.length || request.functions || request.web_search_options);
}

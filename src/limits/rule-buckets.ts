import type { LimitConfig } from '../contracts/config.ts';
import type { Exchange } from '../contracts/exchange.ts';
import type { Demand } from './bucket.ts';
import { limitMatches } from './limit-match.ts';

export interface RuleBucket {
  /** As refusals name it: `user_requests_per_minute`. */
  name: string;
  unit: 'requests' | 'tokens';
  demand: Demand;
}

/** About four bytes of English, or one character and a half of Chinese, are a token; the settlement corrects it. */
const BYTES_PER_TOKEN = 4;
const DEFAULT_ANSWER_TOKENS = 1024;

/** The buckets that this exchange draws on: one a rule and unit, by the rule's distinct value. */
export function bucketsOf(exchange: Exchange): RuleBucket[] {
  const buckets: RuleBucket[] = [];
  for (const rule of exchange.config.limits) {
    const value = valueOf(rule, exchange);
    if (value === undefined) continue;
    if (rule.match !== undefined && !limitMatches(rule.match, exchange)) continue;
    const identity = `limit:${rule.per}:${rule.match ? JSON.stringify(rule.match) : ''}:${value}`;
    if (rule.requests_per_minute !== undefined) {
      buckets.push(toBucket(rule, 'requests', identity, 1, rule.requests_per_minute, rule.burst ?? rule.requests_per_minute));
    }
    if (rule.tokens_per_minute !== undefined) {
      buckets.push(toBucket(rule, 'tokens', identity, demandedTokens(exchange), rule.tokens_per_minute, rule.tokens_per_minute));
    }
  }
  return buckets;
}

function toBucket(rule: LimitConfig, unit: RuleBucket['unit'], identity: string, amount: number, perMinute: number, capacity: number): RuleBucket {
  return { name: `${rule.per}_${unit}_per_minute`, unit, demand: { key: `${identity}:${unit}`, amount, capacity, perMinute } };
}

/** Values are encoded one by one: no id can forge another's bucket. Users and sessions are counted per project. */
function valueOf(rule: LimitConfig, exchange: Exchange): string | undefined {
  const { principal, caller, ask } = exchange;
  if (principal === undefined || caller === undefined) return undefined;
  const parts = (...values: string[]): string => values.map(encodeURIComponent).join('/');
  switch (rule.per) {
    case 'user':
      return caller.user === undefined ? parts('key', principal.id) : parts('user', caller.project, caller.user);
    case 'service':
      return parts(caller.service);
    case 'project':
      return parts(caller.project);
    case 'key':
      return parts(principal.id);
    case 'session':
      return ask.sessionId === undefined ? undefined : parts(caller.project, ask.sessionId);
  }
}

/** What the request carries and its `max_tokens`. */
function demandedTokens(exchange: Exchange): number {
  const { request, inbound } = exchange;
  const answer = request.max_completion_tokens ?? request.max_tokens ?? DEFAULT_ANSWER_TOKENS;
  return Math.ceil((inbound.bytes?.byteLength ?? 0) / BYTES_PER_TOKEN) + answer;
}

import type { Facts } from '../contracts/exchange.ts';
import type { Usage } from '../wire/chat.ts';

/** Later rounds are part of the same answer: counts add up, the last word stands. */
export function addFacts(facts: Facts, later: Facts): void {
  const { attempts, waitedMs, usage, droppedParams, ...word } = later;
  if (attempts !== undefined) facts.attempts = (facts.attempts ?? 0) + attempts;
  if (waitedMs !== undefined) facts.waitedMs = (facts.waitedMs ?? 0) + waitedMs;
  if (droppedParams) facts.droppedParams = [...new Set([...(facts.droppedParams ?? []), ...droppedParams])];
  const sum = addUsage(facts.usage, usage);
  Object.assign(facts, word);
  if (sum) facts.usage = sum;
}

/** Field by field, details too: what all the model calls of one request used. */
export function addUsage(one: Usage | undefined | null, two: Usage | undefined | null): Usage | undefined {
  if (!one || !two) return one ?? two ?? undefined;
  return addNumbers(one, two) as Usage;
}

function addNumbers(one: Record<string, unknown>, two: Record<string, unknown>): Record<string, unknown> {
  const sum: Record<string, unknown> = { ...one };
  for (const [key, value] of Object.entries(two)) {
    const before = sum[key];
    if (typeof value === 'number' && typeof before === 'number') sum[key] = before + value;
    else if (isObject(value) && isObject(before)) sum[key] = addNumbers(before, value);
    else if (value !== null && value !== undefined) sum[key] = value;
  }
  return sum;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

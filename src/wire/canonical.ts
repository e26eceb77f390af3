import { createHash } from 'node:crypto';
import { stringifyJson } from './json.ts';

/** JSON with the members of every object in order: equal values give equal text. Long integers (see json.ts) keep their digits. */
export function canonicalJson(value: unknown): string {
  return stringifyJson(sorted(value)) ?? 'null';
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  // A null prototype: a member called `__proto__` stays a member.
  const out: Record<string, unknown> = Object.create(null);
  for (const [key, member] of entries) out[key] = sorted(member);
  return out;
}

export function sha256(text: string | Uint8Array): string {
  return createHash('sha256').update(text).digest('base64url');
}

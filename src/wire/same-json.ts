import { isRecord } from './json.ts';

/** Do both say the same as JSON? The order of members does not count, a member without a value is none. */
export function sameJson(one: unknown, two: unknown): boolean {
  if (one === two) return true;
  if (Array.isArray(one)) return Array.isArray(two) && one.length === two.length && one.every((item, index) => sameJson(item, two[index]));
  if (!isRecord(one) || !isRecord(two)) return false;
  for (const key in one) if (one[key] !== undefined && !(Object.hasOwn(two, key) && sameJson(one[key], two[key]))) return false;
  for (const key in two) if (two[key] !== undefined && !(Object.hasOwn(one, key) && one[key] !== undefined)) return false;
  return true;
}

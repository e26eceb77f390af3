import type { Condition, RouteInput } from '../../../contracts/matcher.ts';
import { listing, readTexts, simpleCondition } from './simple.ts';

/** One of the request's fields is one of the values. */
export function fieldCondition(key: string, value: unknown, read: (input: RouteInput) => string | undefined): Condition {
  const wanted = readTexts(value, key);
  return simpleCondition(
    (input) => {
      const is = read(input);
      return is !== undefined && wanted.includes(is);
    },
    (input, hit) => {
      const is = read(input);
      if (hit) return `${key} is ${is}`;
      return `${key} is ${is === undefined ? 'not given' : is}, not ${listing(wanted)}`;
    },
    wanted.length === 0 ? { never: `${key} is an empty list` } : {},
  );
}

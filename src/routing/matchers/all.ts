import { defineMatcher } from '../../contracts/matcher.ts';
import { conjunction } from './conditions/conjunction.ts';

/** A list of conditions that must all hold. */
export default defineMatcher({
  compile(value, context) {
    if (!Array.isArray(value) || value.length === 0) throw new Error('all takes a list of conditions');
    return conjunction(value.map((part: unknown) => context.compile(part)));
  },
});

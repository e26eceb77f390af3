import type { Condition, Verdict } from '../../contracts/matcher.ts';
import { defineMatcher } from '../../contracts/matcher.ts';

/** A condition that must not hold. One that nobody can tell (the embedding service is away) does not turn into a hit. */
export default defineMatcher({
  compile(value, context): Condition {
    const part = context.compile(value);
    const traits = {
      ...(part.never && { always: true }),
      ...(part.waits && { waits: true }),
    };
    const { hits } = part;
    return {
      ...traits,
      ...(hits && { hits: (input) => !hits(input) }),
      test: (input) => {
        const verdict = part.test(input);
        return verdict instanceof Promise ? verdict.then(invert) : invert(verdict);
      },
    };
  },
});

function invert(verdict: Verdict): Verdict {
  if (verdict.unknown) return verdict;
  return { hit: !verdict.hit, why: verdict.hit ? `excluded by not: ${verdict.why}` : `not excluded: ${verdict.why}` };
}

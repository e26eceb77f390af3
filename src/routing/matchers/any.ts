import type { Condition, RouteInput, Verdict } from '../../contracts/matcher.ts';
import { defineMatcher } from '../../contracts/matcher.ts';
import { merge } from './conditions/conjunction.ts';

/** A list of conditions of which one must hold; those that must wait (embedding) are asked last. */
export default defineMatcher({
  compile(value, context) {
    if (!Array.isArray(value) || value.length === 0) throw new Error('any takes a list of conditions');
    const parts = value.map((part: unknown) => context.compile(part));
    const ordered = [...parts.filter((part) => !part.waits), ...parts.filter((part) => part.waits)];
    const traits = {
      ...(parts.some((part) => part.always) && { always: true }),
      ...(parts.every((part) => part.never) && { never: parts.map((part) => part.never).join('; ') }),
      ...(parts.every((part) => part.needs) && { needs: parts.flatMap((part) => part.needs ?? []) }),
      ...(parts.some((part) => part.waits) && { waits: true }),
    };
    if (ordered.every((part) => part.hits)) {
      return { ...traits, hits: (input) => ordered.some((part) => part.hits?.(input)), test: (input) => testAny(ordered, input) };
    }
    return { ...traits, test: (input) => testAny(ordered, input) };
  },
});

function testAny(parts: readonly Condition[], input: RouteInput, from = 0, misses: readonly Verdict[] = []): Verdict | Promise<Verdict> {
  const heard = [...misses];
  for (let index = from; index < parts.length; index++) {
    const verdict = (parts[index] as Condition).test(input);
    if (verdict instanceof Promise) {
      return verdict.then((settled) => (settled.hit ? settled : testAny(parts, input, index + 1, [...heard, settled])));
    }
    if (verdict.hit) return verdict;
    heard.push(verdict);
  }
  return merge(false, heard, ' and ');
}

import type { Condition, KeywordProbe, MatcherContext, RouteInput } from '../../contracts/matcher.ts';
import { defineMatcher } from '../../contracts/matcher.ts';
import { listing, readTexts, simpleCondition } from './conditions/simple.ts';

/** Words of which one (`require_all`: every one) occurs: CJK anywhere, others at word edges; case and width do not matter. */
export default defineMatcher({
  modifiers: ['require_all'],
  compile(value, context) {
    const words = readTexts(value, 'keywords');
    const requireAll = context.siblings.require_all ?? false;
    if (typeof requireAll !== 'boolean') throw new Error('require_all takes true or false');
    if (words.length === 0)
      return {
        ...simpleCondition(
          () => false,
          () => 'there are no keywords',
          { never: 'keywords is an empty list' },
        ),
        needs: [],
      };
    return requireAll ? everyWord(words, context) : someWord(words, context);
  },
});

function someWord(words: readonly string[], context: MatcherContext): Condition {
  const probes = words.map((word) => context.keyword(word));
  return simpleCondition(
    (input) => probes.some((probe) => probe(input)),
    (input, hit) => {
      if (!input.hasText) return 'the newest user message has no text';
      return hit ? `keyword ${listing(occurring(words, probes, input))}` : `none of the keywords ${listing(words)}`;
    },
    { needs: probes },
  );
}

function everyWord(words: readonly string[], context: MatcherContext): Condition {
  const probes = words.map((word) => context.keyword(word));
  return simpleCondition(
    (input) => probes.every((probe) => probe(input)),
    (input, hit) => {
      if (!input.hasText) return 'the newest user message has no text';
      if (hit) return `all keywords ${listing(words)}`;
      return `require_all: no ${listing(words.filter((_, index) => !probes[index]?.(input)))}`;
    },
    { needs: probes.slice(0, 1) },
  );
}

function occurring(words: readonly string[], probes: readonly KeywordProbe[], input: RouteInput): string[] {
  return words.filter((_, index) => probes[index]?.(input));
}

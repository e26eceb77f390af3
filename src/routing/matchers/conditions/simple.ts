import type { Condition, RouteInput } from '../../../contracts/matcher.ts';

/** A condition that needs not wait: `test` says what `hits` found, in words. */
export function simpleCondition(
  hits: (input: RouteInput) => boolean,
  why: (input: RouteInput, hit: boolean) => string,
  traits: Pick<Condition, 'always' | 'never' | 'needs'> = {},
): Condition {
  return {
    hits,
    test: (input) => {
      const hit = hits(input);
      return { hit, why: why(input, hit) };
    },
    ...traits,
  };
}

/** A list from the configuration, or its one entry; numbers are taken as text. */
export function readTexts(value: unknown, key: string): string[] {
  const list = Array.isArray(value) ? value : [value];
  return list.map((entry) => {
    if (typeof entry === 'string') return entry;
    if (typeof entry === 'number') return String(entry);
    throw new Error(`${key} takes text or a list of texts, not ${JSON.stringify(entry) ?? 'nothing'}`);
  });
}

/** For people: the first few, and how many more. */
export function listing(texts: readonly string[], limit = 8): string {
  const shown = texts.slice(0, limit).join(', ');
  return texts.length > limit ? `${shown} and ${texts.length - limit} more` : shown;
}

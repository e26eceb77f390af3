import type { Condition, Matcher, MatcherContext } from '../contracts/matcher.ts';
import { isRecord } from '../wire/json.ts';
import { conjunction } from './matchers/conditions/conjunction.ts';
import { nearestName } from './suggest.ts';

/** A key of `match` that no matcher answers to. */
export class UnknownMatcher extends Error {
  constructor(key: string, known: readonly string[]) {
    const nearest = nearestName(key, known);
    super(`there is no matcher ${JSON.stringify(key)}${nearest ? `; did you mean ${nearest}?` : ''} Known: ${known.join(', ')}`);
    this.name = 'UnknownMatcher';
  }
}

/** A key of a rule's `match` that its matcher refuses, or that has none. */
export class RefusedCondition extends Error {
  /** The object within `match` that holds the key. */
  readonly within: object;
  readonly key: string;
  constructor(within: object, key: string, cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.name = 'RefusedCondition';
    this.within = within;
    this.key = key;
  }
}

export type MatchScope = Omit<MatcherContext, 'compile' | 'siblings'>;

/** Compiles a rule's `match`: a string is a regular expression, an object's keys must all hold. Throws an Error for people. */
export function compileMatch(match: unknown, matchers: ReadonlyMap<string, Matcher>, scope: MatchScope): Condition {
  if (typeof match === 'string') return compileKeys({ regex: match }, matchers, scope);
  if (isRecord(match)) return compileKeys(match, matchers, scope);
  throw new Error('match takes a regular expression or an object of conditions');
}

function compileKeys(match: Readonly<Record<string, unknown>>, matchers: ReadonlyMap<string, Matcher>, scope: MatchScope): Condition {
  const keys = Object.keys(match);
  const modifiers = new Set(keys.flatMap((key) => matchers.get(key)?.modifiers ?? []));
  const parts: Condition[] = [];
  for (const key of keys) {
    if (modifiers.has(key)) continue;
    const context: MatcherContext = { ...scope, siblings: match, compile: (inner) => compileMatch(inner, matchers, scope) };
    try {
      const matcher = matchers.get(key);
      if (!matcher) throw new UnknownMatcher(key, [...matchers.keys()].sort());
      parts.push(matcher.compile(match[key], context));
    } catch (cause) {
      // The innermost knows the place best.
      throw cause instanceof RefusedCondition ? cause : new RefusedCondition(match, key, cause);
    }
  }
  if (parts.length === 0) throw new Error("match is empty; '.*' hits everything");
  return conjunction(parts);
}

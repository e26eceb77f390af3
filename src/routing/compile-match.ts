import type { Condition, Matcher, MatcherContext } from '../contracts/matcher.ts';
import { conjunction } from './matchers/conditions/conjunction.ts';
import { nearestName } from './suggest.ts';

/** A key of `match` that no matcher answers to. */
class UnknownMatcher extends Error {
  readonly key: string;
  constructor(key: string, known: readonly string[]) {
    const nearest = nearestName(key, known);
    super(`there is no matcher ${JSON.stringify(key)}${nearest ? `; did you mean ${nearest}?` : ''} Known: ${known.join(', ')}`);
    this.name = 'UnknownMatcher';
    this.key = key;
  }
}

export type MatchScope = Omit<MatcherContext, 'compile' | 'siblings'>;

/** Compiles a rule's `match`: a string is a regular expression, an object's keys must all hold. Throws an Error for people. */
export function compileMatch(match: unknown, matchers: ReadonlyMap<string, Matcher>, scope: MatchScope): Condition {
  if (typeof match === 'string') return compileKeys({ regex: match }, matchers, scope);
  if (typeof match === 'object' && match !== null && !Array.isArray(match)) return compileKeys(Object.fromEntries(Object.entries(match)), matchers, scope);
  throw new Error('match takes a regular expression or an object of conditions');
}

function compileKeys(match: Readonly<Record<string, unknown>>, matchers: ReadonlyMap<string, Matcher>, scope: MatchScope): Condition {
  const keys = Object.keys(match);
  const modifiers = new Set(keys.flatMap((key) => matchers.get(key)?.modifiers ?? []));
  const parts: Condition[] = [];
  for (const key of keys) {
    if (modifiers.has(key)) continue;
    const matcher = matchers.get(key);
    if (!matcher) throw new UnknownMatcher(key, [...matchers.keys()].sort());
    const context: MatcherContext = { ...scope, siblings: match, compile: (inner) => compileMatch(inner, matchers, scope) };
    parts.push(matcher.compile(match[key], context));
  }
  if (parts.length === 0) throw new Error("match is empty; '.*' hits everything");
  return conjunction(parts);
}

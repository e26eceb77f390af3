import type { Priority } from './config.ts';

/** What rules may look at: the newest user message and the request's fields. */
export interface RouteInput {
  /** NFKC, lower case; '' when the newest user message has no text. */
  text: string;
  /** As it was sent. */
  original: string;
  /** No text at all: text matchers miss. */
  hasText: boolean;
  userLevel: string | undefined;
  serviceType: string | undefined;
  project: string | undefined;
  priority: Priority;
  /** Unix milliseconds. */
  now: number;
  /** Matchers that must wait (embedding) leave what they found here, keyed by themselves. */
  signal: AbortSignal | undefined;
}
/** A match or a miss with the reason, for people: which keyword, score or field. */
export interface Verdict {
  hit: boolean;
  why: string;
}
/** One condition of a rule, compiled. Synchronous unless it must ask somebody. */
export interface Condition {
  test(input: RouteInput): Verdict | Promise<Verdict>;
  /** A test that needs no reason: the hot path. Falls back to `test`. */
  hits?(input: RouteInput): boolean;
  /** Always true, whatever comes: for lint. */
  always?: boolean;
}
/** A key of `match`. The file's name in routing/matchers is its key in the configuration. */
export interface Matcher {
  /** Throws an Error with a message for people when `value` makes no sense. `compile` builds nested conditions (`any`, `all`, `not`). */
  compile(value: unknown, context: MatcherContext): Condition;
}
export interface MatcherContext {
  ruleId: string;
  /** Other keys of the same `match` object (`require_all` beside `keywords`). */
  siblings: Readonly<Record<string, unknown>>;
  compile(match: unknown): Condition;
  timezone: string | undefined;
  /** Registers keywords with the one automaton of all rules; gives a probe for "did this one occur". */
  keyword(word: string): (input: RouteInput) => boolean;
  /** Asks the embedding service (or `builtin`); undefined result: it is away. */
  embed?(texts: readonly string[], signal?: AbortSignal): Promise<readonly Float32Array[] | undefined>;
}
export function defineMatcher(matcher: Matcher): Matcher {
  return matcher;
}

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
  /** The request's; for matchers that must wait. */
  readonly signal: AbortSignal | undefined;
  /** What was found once for all rules of this request (keywords that occur, its vector), keyed by whoever found it. */
  readonly memo: Map<object, unknown>;
}
/** A match or a miss with the reason, for people: which keyword, score or field. */
export interface Verdict {
  hit: boolean;
  why: string;
  /** Of a condition by meaning: how near the text came, for views. */
  score?: number | undefined;
  /** Nobody could tell (the embedding service is away): no hit, under `not` neither. */
  unknown?: boolean;
}
/** One condition of a rule, compiled. Synchronous unless it must ask somebody. */
export interface Condition {
  test(input: RouteInput): Verdict | Promise<Verdict>;
  /** A test that needs no reason: the hot path. Falls back to `test`. */
  hits?(input: RouteInput): boolean;
  /** Always true, whatever comes: for lint. */
  always?: boolean;
  /** Can never be true, and why: told on load. */
  never?: string;
  /** Probes of which at least one must be true for a hit: a rule whose probes are all false is not even tested. Absent: it must be tested. */
  needs?: readonly KeywordProbe[];
  /** Must ask somebody: tested after its neighbours, and only when they hold. */
  waits?: boolean;
}
/** Did this keyword occur in the text? The same function for the same keyword. */
export type KeywordProbe = (input: RouteInput) => boolean;
/** How near a text is to the examples of one rule, and to the nearest other rule's. */
export interface Resemblance {
  /** Is the score at least so much? Cheaper than the score itself, which is computed when it is looked at. */
  reaches(least: number): boolean;
  readonly score: number;
  /** The best score of any other rule's examples; undefined when there is no other. */
  readonly next: number | undefined;
}
/** A key of `match`. The file's name in routing/matchers is its key in the configuration. */
export interface Matcher {
  /** Keys beside its own that belong to it (`require_all` to `keywords`). */
  modifiers?: readonly string[];
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
  keyword(word: string): KeywordProbe;
  /**
   * Registers examples; gives a question to the embedding service (or `builtin`): the mean of the `topK` nearest. Undefined: it is
   * away, the rule is skipped. A promise only until the request's text has its vector.
   */
  resembles(examples: readonly string[], topK: number): (input: RouteInput) => Resemblance | undefined | Promise<Resemblance | undefined>;
}
export function defineMatcher(matcher: Matcher): Matcher {
  return matcher;
}

import { RE2JS } from 're2js';
import { KeywordAutomaton, normaliseKeyword } from './keyword-automaton.ts';

/** A rule's `match` as what it demands; keywords are taken apart so that they can be compared one by one. */
export type MatchNode =
  | { kind: 'all' | 'any'; parts: MatchNode[] }
  | { kind: 'not'; part: MatchNode }
  | { kind: 'always' }
  | { kind: 'keyword'; word: string; id: number }
  | { kind: 'regex'; pattern: string; flags: string }
  | { kind: 'field'; key: string; values: string[] }
  | { kind: 'hours'; minutes: ReadonlySet<number> }
  | { kind: 'other'; text: string };

const ANCHORS = /[\^$]|\\[bBAz]/;
const FIELDS = new Set(['user_level', 'service_type', 'project', 'priority']);
const DAY = 24 * 60;

/** Compares rules by what they demand: does whatever hits one also hit the other? Answers yes only when it is sure. */
export class MatchComparer {
  readonly #automaton = new KeywordAutomaton();
  readonly #words: string[] = [];
  readonly #within = new Map<number, ReadonlySet<number>>();

  /** `always`: the compiled rule says that everything hits it. */
  read(match: unknown, always: boolean): MatchNode {
    if (always) return { kind: 'always' };
    if (typeof match === 'string') return { kind: 'regex', pattern: match, flags: 'i' };
    if (typeof match !== 'object' || match === null || Array.isArray(match)) return { kind: 'other', text: JSON.stringify(match) ?? '' };
    const entries = new Map<string, unknown>(Object.entries(match));
    const parts: MatchNode[] = [];
    for (const [key, value] of entries) if (key !== 'require_all') parts.push(this.#readKey(key, value, entries.get('require_all') === true));
    const only = parts[0];
    return parts.length === 1 && only ? only : { kind: 'all', parts };
  }

  #readKey(key: string, value: unknown, requireAll: boolean): MatchNode {
    const list: unknown[] = Array.isArray(value) ? value : [value];
    if (key === 'keywords') return { kind: requireAll ? 'all' : 'any', parts: list.map((word) => this.#keyword(String(word))) };
    if (key === 'any' || key === 'all') return { kind: key, parts: list.map((part) => this.read(part, false)) };
    if (key === 'not') return { kind: 'not', part: this.read(value, false) };
    if (key === 'regex') return this.#regex(value);
    if (FIELDS.has(key)) return { kind: 'field', key, values: list.map(String) };
    if (key === 'hours') return { kind: 'hours', minutes: minutesOf(list.map(String)) };
    return { kind: 'other', text: JSON.stringify([key, value]) };
  }

  #regex(value: unknown): MatchNode {
    if (typeof value === 'string') return { kind: 'regex', pattern: value, flags: 'i' };
    const { pattern, flags } = { pattern: '', flags: 'i', ...(typeof value === 'object' ? value : {}) };
    return { kind: 'regex', pattern: String(pattern), flags: String(flags) };
  }

  #keyword(word: string): MatchNode {
    const normalised = normaliseKeyword(word);
    if (normalised === '') return { kind: 'other', text: 'an empty keyword' };
    const id = this.#automaton.idOf(this.#automaton.add(normalised)) ?? 0;
    this.#words[id] = normalised;
    return { kind: 'keyword', word, id };
  }

  /** Whatever hits `narrow` hits `wide`. */
  implies(narrow: MatchNode, wide: MatchNode): boolean {
    if (wide.kind === 'always') return true;
    if (wide.kind === 'all') return wide.parts.every((part) => this.implies(narrow, part));
    if (narrow.kind === 'any') return narrow.parts.length > 0 && narrow.parts.every((part) => this.implies(part, wide));
    if (narrow.kind === 'all' && narrow.parts.some((part) => this.implies(part, wide))) return true;
    if (wide.kind === 'any') return wide.parts.some((part) => this.implies(narrow, part));
    if (narrow.kind === 'not' && wide.kind === 'not') return this.implies(wide.part, narrow.part);
    return this.#leafImplies(narrow, wide);
  }

  #leafImplies(narrow: MatchNode, wide: MatchNode): boolean {
    if (narrow.kind === 'keyword' && wide.kind === 'keyword') return this.#keywordsWithin(narrow.id).has(wide.id);
    if (narrow.kind === 'keyword' && wide.kind === 'regex') return !ANCHORS.test(wide.pattern) && matches(wide, this.#words[narrow.id] ?? '');
    if (narrow.kind === 'regex' && wide.kind === 'regex') return narrow.pattern === wide.pattern && narrow.flags === wide.flags;
    if (narrow.kind === 'field' && wide.kind === 'field') return narrow.key === wide.key && narrow.values.every((value) => wide.values.includes(value));
    if (narrow.kind === 'hours' && wide.kind === 'hours') return [...narrow.minutes].every((minute) => wide.minutes.has(minute));
    return narrow.kind === 'other' && wide.kind === 'other' && narrow.text === wide.text;
  }

  /**
   * The keywords that a node speaks of, and whether it speaks of nothing else. A rule of keywords alone can only take away
   * from rules with a keyword in which one of its own occurs: thousands of rules need not be compared pair by pair.
   */
  keywordsOf(node: MatchNode): { ids: Set<number>; only: boolean } {
    const ids = new Set<number>();
    const visit = (current: MatchNode): boolean => {
      if (current.kind === 'keyword') ids.add(current.id);
      if (current.kind === 'all' || current.kind === 'any') return current.parts.map(visit).every(Boolean);
      return current.kind === 'keyword';
    };
    return { ids, only: visit(node) };
  }

  /** All keywords that must occur where one of these does. Asked after all rules were read. */
  closure(ids: ReadonlySet<number>): ReadonlySet<number> {
    const all = new Set<number>();
    for (const id of ids) for (const within of this.#keywordsWithin(id)) all.add(within);
    return all;
  }

  /** Keywords that occur in every text in which this one does. */
  #keywordsWithin(id: number): ReadonlySet<number> {
    let within = this.#within.get(id);
    if (!within) {
      within = this.#automaton.scan(this.#words[id] ?? '');
      this.#within.set(id, within);
    }
    return within;
  }
}

/** Any spelling of the keyword can stand in a text, so only a pattern that ignores case is sure to match it. */
function matches({ pattern, flags }: { pattern: string; flags: string }, word: string): boolean {
  if (!flags.includes('i')) return false;
  try {
    return RE2JS.compile(pattern, RE2JS.CASE_INSENSITIVE).test(word);
  } catch {
    return false;
  }
}

function minutesOf(ranges: readonly string[]): ReadonlySet<number> {
  const minutes = new Set<number>();
  for (const range of ranges) {
    const [fromHour = 0, fromMinute = 0, toHour = 0, toMinute = 0] = (range.match(/\d+/g) ?? []).map(Number);
    const from = fromHour * 60 + fromMinute;
    const length = (toHour * 60 + toMinute - from + DAY) % DAY || DAY;
    for (let offset = 0; offset < length; offset++) minutes.add((from + offset) % DAY);
  }
  return minutes;
}

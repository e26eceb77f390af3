import { RE2JS, RE2Set } from 're2js';
import type { RouteInput } from '../../contracts/matcher.ts';
import { defineMatcher } from '../../contracts/matcher.ts';
import { simpleCondition } from './conditions/simple.ts';

const FLAGS: Readonly<Record<string, number>> = { i: RE2JS.CASE_INSENSITIVE, s: RE2JS.DOTALL, m: RE2JS.MULTILINE, u: 0 };
const METACHARACTER = /[\\^$.*+?()[\]{}|\-/]/g;
/** Hits every text whatever its flags are: `.*` unanchored is found at the start of anything. */
const ALWAYS = /^(\^?\.\*\$?|\.\*\?|\^|)$/;
/** What nearly every text matches: a catch-all to whoever wrote it. */
const CATCH_ALL = /^\^?(\.\+|\[\\s\\S\][*+])\$?$/;
/** `^.*$` without `s` asks for a text of one line. */
const ONE_LINE = /^\^\.\*\$$/;

/** Characters that a pattern looks at. */
const MOST_READ = 50_000;
const LEAST_READ = 500;
/**
 * Steps of a pattern's program times characters: about 15 ms where the automaton of its states cannot be built and all states
 * are followed side by side (13 ns each).
 */
const MOST_STEPS = 1_200_000;
/** Of the automaton, in bytes. With re2js's own 8 MB, building it for `(a|b)*a(a|b){14}c` takes half a second for one text. */
const AUTOMATON_BYTES = 262_144;

/**
 * A pattern found anywhere in the text, in linear time whatever the pattern and the text are (RE2). A string ignores case;
 * `{ pattern, flags }` carries its own flags out of `i`, `s`, `m`. The text keeps its case here: the flags decide. Looked at are
 * 50,000 characters, fewer for a pattern of more than 24 steps (1,200,000 by their number, at least 500), so that no text
 * holds the process up.
 */
export default defineMatcher({
  compile(value) {
    const { pattern, flags } = readPattern(value);
    let bits = 0;
    for (const flag of flags) {
      const bit = FLAGS[flag];
      if (bit === undefined) throw new Error(`regex has no flag ${JSON.stringify(flag)}; there are i, s and m`);
      bits |= bit;
    }
    const compiled = compilePattern(pattern, bits);
    const always = ALWAYS.test(pattern) && (!ONE_LINE.test(pattern) || flags.includes('s') || flags.includes('m'));
    return simpleCondition(
      (input) => input.hasText && (always || compiled.hits(casedText(input))),
      (input, hit) => {
        if (!input.hasText) return 'the newest user message has no text';
        if (always) return `${pattern} hits every text`;
        const part = input.original.length > compiled.reads ? ` in the ${compiled.reads} characters that are looked at` : '';
        return `the text ${hit ? 'matches' : 'does not match'} /${pattern}/${flags}${part}`;
      },
      always || CATCH_ALL.test(pattern) ? { always: true } : {},
    );
  },
});

function readPattern(value: unknown): { pattern: string; flags: string } {
  if (typeof value === 'string') return { pattern: value, flags: 'i' };
  if (typeof value === 'object' && value !== null && 'pattern' in value && typeof value.pattern === 'string') {
    const flags = 'flags' in value ? (value.flags ?? '') : 'i';
    if (typeof flags === 'string') return { pattern: value.pattern, flags };
  }
  throw new Error('regex takes a pattern, or { pattern, flags }');
}

interface CompiledPattern {
  /** Characters that it looks at. */
  reads: number;
  hits(text: string): boolean;
}

function compilePattern(pattern: string, bits: number): CompiledPattern {
  try {
    const normalised = normalisePattern(pattern);
    const size = RE2JS.compile(normalised, bits).programSize();
    const reads = Math.min(MOST_READ, Math.max(LEAST_READ, Math.floor(MOST_STEPS / size)));
    // A set of one: re2js lets only sets choose how much memory the automaton may take.
    const set = new RE2Set(RE2Set.UNANCHORED, bits, AUTOMATON_BYTES);
    set.add(normalised);
    set.compile();
    return { reads, hits: (text) => set.match(shorten(text, reads)).length > 0 };
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.replace(/^error parsing regexp: /, '') : 'it cannot be read';
    throw new Error(`regex ${JSON.stringify(pattern)}: ${reason} (RE2 syntax: no look-around, no back-references)`, { cause });
  }
}

/** Stands for what is left out; no text has it (a noncharacter), so that `^a+$` does not take a part for the whole. */
const LEFT_OUT = '\uffff';
/** The beginning, and a fifth from the end: what somebody wants stands before or after what they paste. */
function shorten(text: string, most: number): string {
  if (text.length <= most) return text;
  const end = Math.floor(most / 5);
  return `${text.slice(0, most - end)}${LEFT_OUT}${text.slice(-end)}`;
}

/** The text is NFKC, so the pattern must be; what becomes a metacharacter by it (full-width brackets) was meant literally. */
function normalisePattern(pattern: string): string {
  return [...pattern.normalize('NFC')]
    .map((character) => {
      const normalised = character.normalize('NFKC');
      return normalised === character ? character : normalised.replace(METACHARACTER, '\\$&');
    })
    .join('');
}

const CASED = {};
function casedText(input: RouteInput): string {
  const known = input.memo.get(CASED);
  if (typeof known === 'string') return known;
  const text = shorten(input.original, MOST_READ).normalize('NFKC');
  input.memo.set(CASED, text);
  return text;
}

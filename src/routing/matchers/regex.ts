import { RE2JS } from 're2js';
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

/**
 * A pattern found anywhere in the text, in linear time whatever the pattern and the text are (RE2). A string ignores case;
 * `{ pattern, flags }` carries its own flags out of `i`, `s`, `m`. The text keeps its case here: the flags decide.
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
      (input) => input.hasText && (always || compiled.test(casedText(input))),
      (input, hit) => {
        if (!input.hasText) return 'the newest user message has no text';
        if (always) return `${pattern} hits every text`;
        return `the text ${hit ? 'matches' : 'does not match'} /${pattern}/${flags}`;
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

function compilePattern(pattern: string, bits: number): RE2JS {
  try {
    return RE2JS.compile(normalisePattern(pattern), bits);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.replace(/^error parsing regexp: /, '') : 'it cannot be read';
    throw new Error(`regex ${JSON.stringify(pattern)}: ${reason} (RE2 syntax: no look-around, no back-references)`, { cause });
  }
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
  const text = input.original.normalize('NFKC');
  input.memo.set(CASED, text);
  return text;
}

import { normaliseKeyword } from './keyword-automaton.ts';
import { normaliseText } from './text.ts';
import { buildTrie } from './trie.ts';
import { codePointBefore, isSpacedWordCharacter } from './word-edges.ts';

export interface FoundWords {
  /** Places in the text as it is, half-open. */
  found: { start: number; end: number }[];
  /** From here on a text that goes on may become one of the words. */
  open: number;
}

/** Texts whose every unit becomes one unit: what is written most, Chinese and Japanese too. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII
const UNIT_BY_UNIT = /^[\u0000-\u007f\u3001-\u3003\u3008-\u3011\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uff01-\uff5e]*$/;
const SPACES = /\s\s|[\t\n\r\f\v]/;
/** A character with the marks on it. */
const CHARACTERS = /\P{M}\p{M}*/gsu;

/** Where words and phrases stand in a text, found as keywords of rules are: NFKC, any case, at word edges, Chinese anywhere. */
export function createWordFinder(words: readonly string[]): (text: string) => FoundWords {
  const known = [...new Set(words.map(normaliseKeyword))].filter((word) => word !== '');
  const trie = buildTrie(known);
  const depths = new Int32Array(trie.outputs.length);
  for (const word of known) {
    let state = 0;
    for (let at = 0; at < word.length; at++) {
      state = trie.step(state, word.charCodeAt(at));
      depths[state] = at + 1;
    }
  }
  return (text) => {
    const mapped = mapText(text);
    const found: FoundWords['found'] = [];
    let state = 0;
    for (let index = 0; index < mapped.text.length; index++) {
      state = trie.step(state, mapped.text.charCodeAt(index));
      for (let at = trie.firstOutputs[state] ?? 0; at !== 0; at = trie.outputLinks[at] ?? 0) {
        const start = index + 1 - (known[trie.outputs[at] ?? -1]?.length ?? 0);
        if (standsAlone(mapped.text, start, index + 1)) found.push({ start: mapped.startOf(start), end: mapped.endOf(index) });
      }
    }
    const depth = depths[state] ?? 0;
    return { found, open: depth === 0 ? text.length : mapped.startOf(mapped.text.length - depth) };
  };
}

function standsAlone(text: string, start: number, end: number): boolean {
  if (isSpacedWordCharacter(text.codePointAt(start) ?? 0)) {
    const before = codePointBefore(text, start);
    if (before !== -1 && isSpacedWordCharacter(before)) return false;
  }
  if (end >= text.length || !isSpacedWordCharacter(codePointBefore(text, end))) return true;
  return !isSpacedWordCharacter(text.codePointAt(end) ?? 0);
}

interface MappedText {
  text: string;
  startOf(index: number): number;
  endOf(index: number): number;
}

/** The text as keywords are compared with it, and where each unit of it came from. Spaces in a row are one. */
function mapText(text: string): MappedText {
  if (UNIT_BY_UNIT.test(text) && !SPACES.test(text)) return { text: normaliseText(text), startOf: (index) => index, endOf: (index) => index + 1 };
  const starts: number[] = [];
  const ends: number[] = [];
  // Pieces are joined once: asking a growing string for its end would copy it each time.
  const out: string[] = [];
  let spaced = false;
  for (const { 0: character, index } of text.matchAll(CHARACTERS)) {
    const end = index + character.length;
    const normal = /^\s/u.test(character) ? ' ' : normaliseText(character);
    if (normal === ' ' && spaced) {
      ends[ends.length - 1] = end;
      continue;
    }
    spaced = normal === ' ';
    out.push(normal);
    for (let unit = 0; unit < normal.length; unit++) {
      starts.push(index);
      ends.push(end);
    }
  }
  return { text: out.join(''), startOf: (index) => starts[index] ?? text.length, endOf: (index) => ends[index] ?? text.length };
}

import { FAINT_WORDS, RUNS } from '../faint.ts';
import { normaliseText } from '../text.ts';

const LONGEST = 4;
/** No word of its own begins or ends with these; many do with others that say little alone (会员, 申请, 功能). */
const PARTICLES = new Set('的了吗呢啊吧我你您他她它们是就也这那么怎什');
/** Numbers and codes are of one request each. */
const ONLY_DIGITS = /^\p{N}+$/u;

/** What of a text could be a keyword: 2 to 4 neighbouring characters of unspaced scripts, words, and pairs of words; each once. */
export function phrasesOf(text: string): Set<string> {
  const found = new Set<string>();
  let before: { word: string; end: number } | undefined;
  const normalised = normaliseText(text);
  for (const { 1: run, 2: word, index } of normalised.matchAll(RUNS)) {
    if (run !== undefined) addRun([...run], found);
    if (word === undefined) continue;
    const strong = isStrong(word);
    if (strong) found.add(word);
    if (before && strong && isStrong(before.word) && normalised.slice(before.end, index).trim() === '') found.add(`${before.word} ${word}`);
    before = { word, end: index + word.length };
  }
  return found;
}

function isStrong(word: string): boolean {
  return word.length > 1 && !FAINT_WORDS.has(word) && !ONLY_DIGITS.test(word);
}

/** One that begins or ends with a particle is cut in the wrong place. */
function addRun(characters: readonly string[], found: Set<string>): void {
  for (let from = 0; from < characters.length - 1; from++) {
    if (PARTICLES.has(characters[from] as string)) continue;
    for (let length = 2; length <= LONGEST && from + length <= characters.length; length++) {
      if (!PARTICLES.has(characters[from + length - 1] as string)) found.add(characters.slice(from, from + length).join(''));
    }
  }
}

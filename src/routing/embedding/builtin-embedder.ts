import { FAINT_CHARACTERS, FAINT_WORDS, RUNS } from '../faint.ts';
import { hashOf } from '../hash.ts';
import { normaliseText } from '../text.ts';
import type { Embedder } from './embedder.ts';
import { toUnitVector } from './embedder.ts';

const DIMENSIONS = 1024;

/**
 * Offline vectors of what a text is made of: pieces of words and neighbouring characters, hashed. It compares wording, not
 * meaning: near are texts that say it in nearly the same letters.
 */
export function createBuiltinEmbedder(): Embedder {
  return {
    identity: `builtin:${DIMENSIONS}:1`,
    remote: false,
    embed: async (texts) => texts.map(toVector),
  };
}

/** A text without letters and digits gets a vector that is near to no other. */
function toVector(text: string): Float32Array {
  const counts = new Map<string, number>();
  const add = (feature: string, weight: number) => counts.set(feature, (counts.get(feature) ?? 0) + weight);
  for (const [, unspaced, word] of normaliseText(text).matchAll(RUNS)) {
    if (unspaced) addCharacters(unspaced, add);
    else if (word) addWord(word, add);
  }
  const vector = new Float64Array(DIMENSIONS);
  for (const [feature, weight] of counts) {
    const hash = hashOf(feature);
    const at = hash % DIMENSIONS;
    vector[at] = (vector[at] ?? 0) + (hash & 0x10000 ? 1 : -1) * Math.sqrt(weight);
  }
  return toUnitVector(vector) ?? new Float32Array(DIMENSIONS);
}

function addCharacters(run: string, add: (feature: string, weight: number) => void): void {
  const characters = [...run];
  for (const [index, character] of characters.entries()) {
    const faint = FAINT_CHARACTERS.has(character);
    add(character, faint ? 0.02 : 0.3);
    const next = characters[index + 1];
    if (next === undefined) continue;
    add(character + next, faint && FAINT_CHARACTERS.has(next) ? 0.1 : faint || FAINT_CHARACTERS.has(next) ? 0.4 : 1);
    const third = characters[index + 2];
    if (third !== undefined) add(character + next + third, 0.3);
  }
}

function addWord(word: string, add: (feature: string, weight: number) => void): void {
  if (FAINT_WORDS.has(word)) {
    add(`=${word}`, 0.1);
    return;
  }
  add(`=${word}`, 1);
  const bounded = `^${word}$`;
  for (let index = 0; index + 3 <= bounded.length; index++) add(bounded.slice(index, index + 3), 0.2);
}

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { KeywordAutomaton, normaliseKeyword } from '../../src/routing/keyword-automaton.ts';
import { normaliseText } from '../../src/routing/text.ts';

const WORD = /[\p{L}\p{N}\p{M}_]/u;
const CJK = /[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}]/u;
const isWord = (character: string | undefined) => character !== undefined && WORD.test(character) && !CJK.test(character);

/** The rule as a reader would write it down, at every place of the text. */
function naively(text: string, keyword: string): boolean {
  const characters = [...text.replace(/\s+/gu, ' ')];
  const wanted = [...keyword];
  return characters.some((_, start) => {
    if (!wanted.every((character, offset) => characters[start + offset] === character)) return false;
    if (isWord(wanted[0]) && isWord(characters[start - 1])) return false;
    return !(isWord(wanted.at(-1)) && isWord(characters[start + wanted.length]));
  });
}

const letters = fc.constantFrom('a', 'b', 'c', 'ab', ' ', '  ', '\n', '订', '单', '订单', '+', 'é', '_', '7', 'Ａ', '𠮷', '😀', 'ー', 'ж', '-');
const piece = (max: number) => fc.array(letters, { minLength: 1, maxLength: max }).map((parts) => parts.join(''));

describe('the keyword automaton', () => {
  it('finds exactly what looking at every place finds', () => {
    fc.assert(
      fc.property(fc.array(piece(4), { minLength: 1, maxLength: 12 }), piece(30), (words, raw) => {
        const usable = words.filter((word) => normaliseKeyword(word) !== '');
        const automaton = new KeywordAutomaton();
        const probes = usable.map((word) => automaton.add(word));
        const text = normaliseText(raw);
        const found = automaton.scan(text);
        for (const [index, word] of usable.entries()) {
          const id = automaton.idOf(probes[index] ?? (() => false)) ?? -1;
          // A phrase among the keywords makes runs of white space one space; without one there is nothing to compare them with.
          assert.equal(found.has(id), naively(text, normaliseKeyword(word)), `${JSON.stringify(word)} in ${JSON.stringify(text)}`);
        }
      }),
      { numRuns: 400 },
    );
  });

  it('gives one probe to spellings of one keyword', () => {
    const automaton = new KeywordAutomaton();
    assert.equal(automaton.add('Order'), automaton.add('ＯＲＤＥＲ'));
    assert.equal(automaton.add('credit card'), automaton.add(' credit   Card'));
  });

  it('refuses a keyword with nothing in it', () => {
    assert.throws(() => new KeywordAutomaton().add('  '), /nothing in it/);
  });

  it('takes keywords added after a text was scanned', () => {
    const automaton = new KeywordAutomaton();
    automaton.add('one');
    assert.equal(automaton.scan('one two').size, 1);
    automaton.add('two');
    assert.equal(automaton.scan('one two').size, 2);
  });
});

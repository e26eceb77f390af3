import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { WordCounter } from '../../src/context/word-counter.ts';

const require = createRequire(import.meta.url);
const { Tiktoken } = require('tiktoken/lite');

/** What the pattern tells apart: cases, marks, scripts, digits, all kinds of white space and line ends, contractions, halves of pairs, special tokens. */
const BITS = [
  "'s",
  "'S",
  "'ſ",
  "'re",
  "'LL",
  "don't",
  'Wort',
  'WORT',
  'ǅ',
  'é',
  'e\u0301',
  '订单',
  'かな',
  '한국',
  'ة',
  '12',
  '٣',
  '½',
  ' ',
  '  ',
  '\t',
  '\n',
  '\r\n',
  '\u0085',
  '\u00a0',
  '\ufeff',
  '\u2028',
  '\u3000',
  '/',
  '{"a":',
  '</',
  '…',
  '👍🏽',
  '\ud800',
  '\udc00',
  '<|endoftext|>',
  'ʰ',
  'ª',
];

/** Scripts that no version of Unicode adds to: tiktoken's tables and Node's are of different versions. */
const SETTLED = [
  [0, 0x36f],
  [0x391, 0x52f],
  [0x5d0, 0x5ea],
  [0x621, 0x64a],
  [0x904, 0x939],
  [0x1e00, 0x1eff],
  [0x2000, 0x206f],
  [0x3000, 0x303f],
  [0x4e00, 0x9fa5],
  [0xac00, 0xd7a3],
  [0x1f300, 0x1f5ff],
] as const;
const letter = fc.oneof(...SETTLED.map(([min, max]) => fc.integer({ min, max }))).map((code) => String.fromCodePoint(code));

describe('counting word by word', () => {
  for (const encoding of ['o200k_base', 'cl100k_base']) {
    const ranks = require(`tiktoken/encoders/${encoding}.json`);
    const tokenizer = new Tiktoken(ranks.bpe_ranks, ranks.special_tokens, ranks.pat_str);
    const counter = new WordCounter(tokenizer, ranks.pat_str);

    it(`agrees with ${encoding} on whatever text, known words and new ones`, () => {
      const text = fc.array(fc.oneof({ arbitrary: fc.constantFrom(...BITS), weight: 4 }, fc.string({ unit: letter, maxLength: 8 })), { maxLength: 30 });
      fc.assert(
        fc.property(text, (parts) => {
          const joined = parts.join('');
          assert.equal(counter.count(joined), tokenizer.encode_ordinary(joined).length);
        }),
        { numRuns: 3000 },
      );
    });

    it(`asks ${encoding} once for a word`, () => {
      let asked = 0;
      const counting = new WordCounter(
        {
          encode_ordinary(text) {
            asked++;
            return tokenizer.encode_ordinary(text);
          },
        },
        ranks.pat_str,
      );
      const sentence = 'Where is my order now, and where is my money? ';
      assert.equal(counting.count(sentence.repeat(20)), tokenizer.encode_ordinary(sentence.repeat(20)).length);
      assert.ok(asked <= 14, `${asked} words`);
    });
  }
});

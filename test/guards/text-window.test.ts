import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { Vault } from '../../src/guards/vault.ts';
import { costIn } from '../time-kit.ts';
import { everything, guardSet, PLANTED, through } from './guard-kit.ts';

const set = guardSet(everything);
const none = guardSet([]);
const find = (text: string): string[] => {
  const hits: { start: number; end: number; kind: string }[] = set.output.look(text).hits;
  return hits.map(({ start, end, kind }) => `${kind}:${text.slice(start, end)}`);
};

describe('what guards find', () => {
  it('is every planted value, whole, whatever stands around it', () => {
    for (const [kind, values] of Object.entries(PLANTED))
      for (const value of values)
        for (const text of [value, `call ${value}.`, `（${value}）`, `我的是${value}谢谢`, `x="${value}"`, `${value}\n${value}`])
          assert.ok(find(text).includes(`${kind}:${value}`), `${kind} in ${text}: ${find(text)}`);
  });

  it('is not what only looks like it', () => {
    const plain = [
      'order 4111 1111 1111 1112',
      'In 2024 the 13 teams of 11 scored 1234 5678 points',
      '1712345678901',
      '3.1415926535897932384626',
      'sk-learn-for-absolute-beginners',
      'user@localhost',
      'GB82 WEST 1234 5698 7654 33',
      '11010519491231002 0',
      '-----BEGIN CERTIFICATE-----',
      'eyJ is how a token begins',
      'version 10.20.30.40',
    ];
    for (const text of plain) assert.deepEqual(find(text), [], text);
  });

  it('is a card beside its security code and its date', () => {
    assert.deepEqual(find('4111 1111 1111 1111 123'), ['card:4111 1111 1111 1111']);
    assert.deepEqual(find('2024 4111 1111 1111 1111 12/27'), ['card:4111 1111 1111 1111']);
  });

  it('is a word in any case and width, at word edges, and Chinese anywhere', () => {
    for (const text of ['Tiger!', 'ＴＩＧＥＲ', 'a tiger', 'blue\n moon', '这是内部代号吗']) assert.equal(find(text).length, 1, text);
    for (const text of ['tigers', 'blue moons', 'a bluemoon']) assert.deepEqual(find(text), [], text);
  });
});

describe('a window', () => {
  const around = ['Please use ', ' today; thanks.'] as const;

  it('lets nothing of a planted value through, cut at every place', () => {
    for (const [kind, values] of Object.entries(PLANTED))
      for (const value of values) {
        const text = around.join(value);
        for (let cut = 0; cut <= text.length; cut++) {
          const out = through([text.slice(0, cut), text.slice(cut)], set);
          assert.equal(out, around.join(`⟦${kind}_1⟧`), `${kind} cut at ${cut}`);
        }
        assert.equal(through([...text], set), around.join(`⟦${kind}_1⟧`), `${kind} unit by unit`);
      }
  });

  it('says the same of a text whatever the pieces it comes in', () => {
    const piece = fc.constantFrom(
      ...Object.values(PLANTED).flat(),
      'tiger',
      '内部代号',
      ' ',
      '. ',
      'the number ',
      '号码',
      '12',
      '-',
      '@',
      '\n',
      'sk-',
      '+',
      'GB',
      '⟦',
      '(',
    );
    const text = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(''));
    fc.assert(
      fc.property(text, fc.array(fc.nat({ max: 300 }), { maxLength: 8 }), (whole, cuts) => {
        const places = [0, ...cuts.map((cut) => Math.min(cut, whole.length)), whole.length].sort((a, b) => a - b);
        const pieces = places.slice(1).map((place, index) => whole.slice(places[index], place));
        assert.equal(through(pieces, set), through([whole], set));
      }),
      { numRuns: 150 },
    );
  });

  it('holds no more than it must', () => {
    assert.equal(through(['hello world '], set), 'hello world ');
    const held = (text: string): number => text.length - set.output.look(text).open;
    assert.equal(held('Good morning. '), 0);
    assert.equal(held('你好，请问'), 0);
    assert.ok(held(`${'word '.repeat(50)}wo`) <= 3);
    assert.ok(held('1'.repeat(10_000)) <= 512);
    assert.ok(held('a'.repeat(10_000)) <= 600);
  });

  it('swallows a secret that is longer than what it holds', () => {
    const endless = `-----BEGIN PRIVATE KEY-----\n${`${'MIIEowIBAAKCAQEAu1SU1LfVLPHCozMxH2Mo4lgO'.repeat(2)}\n`.repeat(300)}`;
    const pieces = endless.match(/[\s\S]{1,777}/g) ?? [];
    const out = through(pieces, set);
    assert.ok(!out.includes('MIIE') && !out.includes('CAQEAu1'), out.slice(0, 200));
  });

  it('gives back what was taken out, cut at every place', () => {
    const vault = new Vault();
    const name = vault.keep('card', '4111 1111 1111 1111');
    const text = `Card ${name} is charged.`;
    for (let cut = 0; cut <= text.length; cut++)
      assert.equal(through([text.slice(0, cut), text.slice(cut)], none, { vault }), 'Card 4111 1111 1111 1111 is charged.');
  });

  it('keeps JSON what it is', () => {
    const vault = new Vault();
    const name = vault.keep('private_key', 'line 1\n"line" 2');
    assert.deepEqual(JSON.parse(through([`{"key":"${name}","bare":"\\u27e6private_key_1\\u27e7"}`], none, { vault, json: true })), {
      key: 'line 1\n"line" 2',
      bare: 'line 1\n"line" 2',
    });
    const numbers = '{"card":4111111111111111,"note":"4111111111111111"}';
    for (let cut = 0; cut <= numbers.length; cut++)
      assert.deepEqual(JSON.parse(through([numbers.slice(0, cut), numbers.slice(cut)], set, { json: true })), { card: '⟦card_1⟧', note: '⟦card_1⟧' });
  });

  it('scans a megabyte of prose for little more than ten times what a tenth of it costs', async () => {
    const prose = 'The quick brown fox jumps over the lazy dog, 42 times a day; 快速的棕色狐狸。 '.repeat(14_000);
    const scans = (text: string) => () => assert.equal(through([text], set), text);
    const growth = await costIn(scans(prose.slice(0, prose.length / 10)), scans(prose));
    assert.ok(growth < 30, `${growth.toFixed(1)} times as much`);
  });
});

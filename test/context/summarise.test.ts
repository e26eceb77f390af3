import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { summarise } from '../../src/context/summarise.ts';
import { parseJson, stringifyJson } from '../../src/wire/json.ts';

/** Four bytes a token: what is tested is the reduction, not the counting. */
const count = (text: string): number => Math.ceil(Buffer.byteLength(text) / 4);
const LONE_SURROGATE = /\p{Cs}/u;
const rule = { keep_last: 3, max_tokens: 100 };

describe('summarising a tool result', () => {
  it('leaves what fits alone, to the byte', async () => {
    const text = '{ "b": 1,\n "a": [1, 2, 3, 4, 5] }';
    assert.equal(await summarise(text, rule, count), text);
  });

  it('keeps the last of an array, with a mark of what went', async () => {
    const text = JSON.stringify({ id: '7', list: Array.from({ length: 50 }, (_, index) => ({ index, note: 'some words' })) });
    assert.deepEqual(JSON.parse(await summarise(text, rule, count)), {
      id: '7',
      list: ['[47 earlier items omitted]', ...[47, 48, 49].map((index) => ({ index, note: 'some words' }))],
    });
  });

  it('keeps only the named fields, wherever they stand, and reduces further where they do not fit', async () => {
    const order = (id: number) => ({ id: 9_007_199_254_740_991 - id, internal: 'x'.repeat(100), buyer: { name: 'Li', note: 'y'.repeat(100) } });
    const text = JSON.stringify({ orders: [order(1), order(2)], trace: 'z'.repeat(300) });
    const selected = JSON.parse(await summarise(text, { ...rule, fields: ['id', 'name'] }, count));
    const gone = { '…': '[1 more members omitted]' };
    assert.deepEqual(selected, { orders: [1, 2].map((id) => ({ id: order(id).id, buyer: { name: 'Li', ...gone }, ...gone })), ...gone });
    const many = JSON.stringify({ orders: Array.from({ length: 60 }, (_, id) => order(id)), trace: 'z' });
    const reduced = JSON.parse(await summarise(many, { keep_last: 2, max_tokens: 100, fields: ['id'] }, count));
    assert.deepEqual(
      reduced.orders.map((kept: { id: number } | string) => (typeof kept === 'string' ? kept : kept.id)),
      ['[58 earlier items omitted]', order(58).id, order(59).id],
    );
    assert.deepEqual(JSON.parse(await summarise(text, { ...rule, fields: ['nothing'] }, count)).orders.length, 2, 'named in vain');
  });

  it('keeps head and tail of a long string', async () => {
    const value = JSON.parse(await summarise(JSON.stringify({ log: `HEAD ${'x'.repeat(5000)} TAIL` }), rule, count));
    assert.match(value.log, /^HEAD x+ …\[\d+ characters omitted\]… x+ TAIL$/);
  });

  it('keeps its members even where little room is left for a long string', async () => {
    const eachSign = (text: string): number => text.length;
    const text = `{"name":"short enough to stay as it is","log":"HEAD${'长文'.repeat(3000)}TAIL","big":9007199254740993}`;
    for (const max_tokens of [160, 140, 125]) {
      const short = await summarise(text, { keep_last: 1, max_tokens }, eachSign);
      assert.match(short, /^\{"name":"short enough to stay as it is","log":"HEAD.*…\[\d+ characters omitted\]….*","big":9007199254740993\}$/);
    }
  });

  it('keeps plain text plain', async () => {
    const short = await summarise(`HEAD ${'text '.repeat(2000)} TAIL`, rule, count);
    assert.match(short, /^HEAD .*characters omitted.* TAIL$/);
  });

  it('keeps every digit of long integers', async () => {
    const text = `{"id":9007199254740993,"list":[${Array.from({ length: 200 }, () => '9007199254740995').join(',')}]}`;
    const short = await summarise(text, rule, count);
    assert.match(short, /"id":9007199254740993,/);
    assert.match(short, /9007199254740995,9007199254740995,9007199254740995\]/);
  });

  it('gives valid JSON within the limit for any JSON, and well-formed text for any text', async () => {
    const json = fc
      .jsonValue({ maxDepth: 6 })
      .map((value) => JSON.stringify({ value, more: Array.from({ length: 60 }, () => value), text: '👍订单'.repeat(200) }));
    await fc.assert(
      fc.asyncProperty(json, fc.integer({ min: 20, max: 300 }), async (text, max_tokens) => {
        const short = await summarise(text, { keep_last: 3, max_tokens }, count);
        assert.ok(count(short) <= max_tokens);
        JSON.parse(short);
        assert.doesNotMatch(short, LONE_SURROGATE);
        assert.equal(stringifyJson(parseJson(short)), short);
      }),
      { numRuns: 150 },
    );
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'grapheme', minLength: 50 }), async (part) => {
        const short = await summarise(part.repeat(30), rule, count);
        assert.ok(count(short) <= rule.max_tokens);
        assert.doesNotMatch(short, LONE_SURROGATE);
      }),
      { numRuns: 50 },
    );
  });
});

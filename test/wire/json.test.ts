import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseJson, parseJsonBytes, stringifyJson } from '../../src/wire/json.ts';

test('integers beyond 2^53 keep their digits, through changes beside them', () => {
  const text = '{"id":9007199254740993,"list":[-12345678901234567890,1],"text":"9007199254740993 \\"12345678901234567890\\"","n":1.5}';
  const value = parseJson(text) as Record<string, unknown>;
  value.added = true;
  assert.equal(stringifyJson(value), `${text.slice(0, -1)},"added":true}`);
});
test('what has no long integers is what JSON.parse gives', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value);
      assert.equal(stringifyJson(parseJson(text)), JSON.stringify(JSON.parse(text)));
    }),
  );
});
test('any tree of long integers and strings comes back as it was', () => {
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { maxDepth: 3 },
      fc.bigInt().map(String),
      fc.string().map((text) => JSON.stringify(text)),
      fc.array(tie('tree') as fc.Arbitrary<string>, { maxLength: 3 }).map((list) => `[${list.join(',')}]`),
    ),
  }));
  fc.assert(fc.property(tree as fc.Arbitrary<string>, (text) => assert.equal(stringifyJson(parseJson(text)), text)));
});
test('wherever they stand, and beside whatever other digits', () => {
  for (let before = 0; before < 36; before++)
    for (const digits of [15, 16, 17, 33]) {
      const text = `[${'12345678901234,'.repeat(before % 3)}"${'7'.repeat(before % 2)}${'x'.repeat(before)}",${'9'.repeat(digits)}]`;
      assert.equal(stringifyJson(parseJson(text)), text);
    }
});
test('broken JSON throws a SyntaxError; a byte order mark does not', () => {
  assert.throws(() => parseJson('{"a":12345678901234567890,}'), SyntaxError);
  assert.deepEqual(parseJsonBytes(Buffer.from('\ufeff{"a":1}')), { a: 1 });
});

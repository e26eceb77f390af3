import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { parseJson, stringifyJson } from '../../src/wire/json.ts';

describe('JSON with integers beyond 2^53', () => {
  test('keeps their digits wherever a value may stand', () => {
    const text = '{"id":9007199254740993,"list":[12345678901234567890,-9007199254740995],"text":"9007199254740993","small":1}';
    assert.equal(stringifyJson(parseJson(text)), text);
  });

  test('leaves long fractions and exponents alone', () => {
    for (const text of ['0.0000010000230600365441', '[-0.00009007199255211992]', '{"x":1.2345678901234567e-7}', '12345678901234567.5', '1e+0000000000000001'])
      assert.deepEqual(parseJson(text), JSON.parse(text), text);
  });

  test('reads whatever JSON.parse reads', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        assert.equal(stringifyJson(parseJson(text)), JSON.stringify(JSON.parse(text)));
      }),
      { numRuns: 300 },
    );
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { prefixEnd } from '../../src/stores/cold/sql/rows.ts';
import { decodeText, encodeText } from '../../src/stores/cold/sql/text.ts';

/** Any 16-bit units at all, with the awkward ones often. */
const anything = fc.string({
  unit: fc.oneof(
    fc.constantFrom('\u0000', '\ue000', '\ud800', '\udfff', '0', 'd', '\n', '\u{10ffff}'),
    fc.nat(0xffff).map((unit) => String.fromCharCode(unit)),
  ),
});

describe('a text on its way into a database', () => {
  it('comes back as it was', () => fc.assert(fc.property(anything, (text) => decodeText(encodeText(text)) === text)));
  it('is one that UTF-8 and PostgreSQL can hold', () => {
    fc.assert(
      fc.property(anything, (text) => {
        const encoded = encodeText(text);
        assert.equal(Buffer.from(encoded).toString(), encoded);
        assert.ok(!encoded.includes('\u0000'));
      }),
    );
  });
  it('is left as it is when there is nothing to fear', () => assert.equal(encodeText('订单 "42" \u{1f4e6} é \\ %'), '订单 "42" \u{1f4e6} é \\ %'));
});

describe('the end of a prefix', () => {
  it('is behind every text that begins so, and before every other that is greater, in byte order', () => {
    fc.assert(
      fc.property(anything.map(encodeText), anything.map(encodeText), (prefix, other) => {
        const [start, end] = [Buffer.from(prefix), Buffer.from(prefixEnd(prefix))];
        const within = (text: string): boolean => Buffer.compare(Buffer.from(text), start) >= 0 && Buffer.compare(Buffer.from(text), end) < 0;
        assert.ok(within(prefix + other));
        if (!other.startsWith(prefix)) assert.ok(!within(other));
      }),
    );
  });
});

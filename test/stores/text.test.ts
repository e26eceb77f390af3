import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { prefixEnd } from '../../src/stores/cold/sql/rows.ts';
import { decodeText, encodeText, toJson } from '../../src/stores/cold/sql/text.ts';
import { toHead, toLine } from '../../src/stores/hot/redis/session-lines.ts';
import type { ChatMessage } from '../../src/wire/chat.ts';
import { parseJson } from '../../src/wire/json.ts';

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

describe('a value on its way into a store', () => {
  it('is plain JSON that any other process reads, its long integers to the digit', () => {
    const text = '{"role":"user","content":"x","order":9007199254740993}';
    assert.equal(toJson(parseJson(text)), text);
    const message = parseJson(text) as ChatMessage;
    for (const line of [toLine({ message, tokens: 1 }), toHead({ version: 1, system: [{ message, tokens: 1 }] }, 'stamp')])
      assert.match(line, /"order":9007199254740993\}/);
  });
});

describe('the end of a prefix', () => {
  it('is there for a prefix of last code points, too', () => {
    const last = '\u{10ffff}';
    for (const text of [last, last + last, last.repeat(500)]) assert.ok(Buffer.compare(Buffer.from(text), Buffer.from(prefixEnd(last))) < 0);
  });
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

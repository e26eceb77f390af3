import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { prefixEnd } from '../../src/stores/cold/sql/rows.ts';
import { decodeText, encodeText, toJson } from '../../src/stores/cold/sql/text.ts';
import { parseSessionText, SessionLines, toSessionText } from '../../src/stores/hot/redis/session-text.ts';
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
    const session = toSessionText({ version: 1, system: [{ message, tokens: 1 }], messages: [{ message, tokens: 1 }] });
    assert.equal(session.match(/"order":9007199254740993\}/g)?.length, 2);
    assert.equal(toSessionText(parseSessionText(session)), session);
  });
});

describe('what was read of a session', () => {
  const message = fc.record({ role: fc.constantFrom('user', 'assistant'), content: anything }, { noNullPrototype: true }) as fc.Arbitrary<ChatMessage>;
  const stored = fc.record({ message, tokens: fc.nat(99) }, { noNullPrototype: true });
  const turn = fc.record({ added: fc.array(stored, { maxLength: 3 }), dropped: fc.nat(4), own: fc.boolean(), system: fc.array(stored, { maxLength: 1 }) });

  it('is what the text says, whoever wrote the turns and wherever the window stands', () => {
    fc.assert(
      fc.property(fc.array(turn, { maxLength: 12 }), (turns) => {
        const lines = new SessionLines();
        let messages: (typeof turns)[number]['added'] = [];
        for (const [version, { added, dropped, own, system }] of turns.entries()) {
          messages = [...messages, ...added].slice(dropped);
          if (own) lines.add('key', added);
          const text = toSessionText({ version, system, messages });
          assert.deepEqual(lines.parse('key', text), parseSessionText(text));
          assert.deepEqual(lines.parse('key', text), { version, system, messages });
        }
      }),
    );
  });
  it('is not parsed again, nor what this process wrote itself', () => {
    const lines = new SessionLines();
    const say = (content: string): { message: ChatMessage; tokens: number } => ({ message: { role: 'user', content }, tokens: 1 });
    const system = [say('system')];
    const first = lines.parse('key', toSessionText({ version: 1, system, messages: [say('a'), say('b')] }));
    const mine = say('c');
    lines.add('key', [mine]);
    const next = lines.parse('key', toSessionText({ version: 2, system, messages: [say('b'), say('c')] }));
    assert.equal(next.system, first.system);
    assert.equal(next.messages[0], first.messages[1]);
    assert.equal(next.messages[1], mine);
    assert.notEqual(lines.parse('other', toSessionText(next)).messages[0], next.messages[0]);
  });
  it('is let go beyond its bound', () => {
    const lines = new SessionLines(1000);
    const text = (content: string): string => toSessionText({ version: 1, system: [], messages: [{ message: { role: 'user', content }, tokens: 1 }] });
    const [small, large] = [lines.parse('small', text('a')), lines.parse('large', text('b'.repeat(2000)))];
    assert.equal(lines.parse('small', text('a')).messages[0], small.messages[0]);
    assert.notEqual(lines.parse('large', text('b'.repeat(2000))).messages[0], large.messages[0]);
  });
  it('a text that is written otherwise is read as well, and one that is no session is refused', () => {
    const lines = new SessionLines();
    const session = { version: 3, system: [], messages: [{ message: { role: 'user', content: 'x' } as ChatMessage, tokens: 1 }] };
    const text = JSON.stringify({ ...session, messages: session.messages.map((one) => ({ role: 'user', ...one })) });
    assert.deepEqual(lines.parse('key', text), session);
    assert.throws(() => lines.parse('key', toSessionText(session).slice(0, -9)), SyntaxError);
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

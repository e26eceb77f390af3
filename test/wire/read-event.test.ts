import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readEvent } from '../../src/wire/sse.ts';

test('an event reads the same however its lines end, with a space after the colon or without', () => {
  const word = fc.stringMatching(/^[a-z{}":, 北😀]{0,12}$/u).filter((text) => text === text.trim());
  fc.assert(
    fc.property(
      fc.option(word, { nil: undefined }),
      fc.array(word, { minLength: 1, maxLength: 3 }),
      fc.constantFrom('\n', '\r\n', '\r'),
      fc.constantFrom('', ' '),
      (name, lines, end, space) => {
        const fields = [...(name === undefined ? [] : [`event:${space}${name}`]), ...lines.map((line) => `data:${space}${line}`)];
        assert.deepEqual(readEvent(Buffer.from(fields.join(end) + end + end)), { event: name ?? '', data: lines.join('\n') });
      },
    ),
    { numRuns: 500 },
  );
});

test('fields in another order, comments and unknown fields change nothing', () => {
  const expected = { event: 'ping', data: '{}' };
  for (const text of [
    'event: ping\ndata: {}\n\n',
    'data: {}\nevent: ping\n\n',
    ': hi\nevent: ping\ndata: {}\n\n',
    'event: ping\nid: 7\ndata: {}\nretry: 3\n\n',
    'event: ping\ndata: {}\n: bye\n\n',
  ])
    assert.deepEqual(readEvent(Buffer.from(text)), expected, text);
  assert.deepEqual(readEvent(Buffer.from(': only a comment\n\n')), { event: '', data: undefined });
});

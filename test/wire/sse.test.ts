import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { cutEvents, readEvent, SseSplitter } from '../../src/wire/sse.ts';

const ends = fc.constantFrom('\n', '\r\n', '\r');
const value = fc.string({ unit: 'grapheme', maxLength: 12 }).map((text) => text.replace(/[\r\n\ufeff]/g, ''));
const event = fc.record({ data: fc.array(value, { minLength: 1, maxLength: 3 }), comment: fc.boolean(), space: fc.boolean() });

function write(events: { data: string[]; comment: boolean; space: boolean }[], end: string): Buffer {
  const one = ({ data, comment, space }: (typeof events)[number]): string =>
    `${comment ? `: hm${end}` : ''}${data.map((line) => `data:${space || line.startsWith(' ') ? ' ' : ''}${line}${end}`).join('')}${end}`;
  return Buffer.from(events.map(one).join(''));
}
function split(bytes: Buffer, cuts: readonly number[]): string[] {
  const splitter = new SseSplitter();
  const runs: (Buffer | undefined)[] = [];
  const at = [0, ...[...cuts].map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  for (let i = 1; i < at.length; i++) runs.push(splitter.push(bytes.subarray(at[i - 1], at[i])));
  runs.push(splitter.flush());
  return runs.flatMap((run) => (run ? cutEvents(run) : [])).flatMap((one) => readEvent(one).data ?? []);
}

test('however a stream is cut, the same events come out, whatever its line ends', () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 6 }), ends, fc.array(fc.nat(), { maxLength: 8 }), (events, end, cuts) => {
      assert.deepEqual(
        split(write(events, end), cuts),
        events.map(({ data }) => data.join('\n')),
      );
    }),
  );
});
test('runs hold whole events only', () => {
  const splitter = new SseSplitter();
  assert.equal(splitter.push(Buffer.from('data: a\n')), undefined);
  assert.equal(splitter.push(Buffer.from('\ndata: b'))?.toString(), 'data: a\n\n');
  assert.equal(splitter.flush()?.toString(), 'data: b\n\n');
  assert.equal(splitter.flush(), undefined);
});
test('the LF of a CRLF that was cut belongs to the event before it', () => {
  const splitter = new SseSplitter();
  assert.equal(splitter.push(Buffer.from('data: a\r\n\r'))?.toString(), 'data: a\r\n\r');
  assert.equal(splitter.push(Buffer.from('\n')), undefined);
  assert.equal(splitter.push(Buffer.from('data: b\r\n\r\n'))?.toString(), 'data: b\r\n\r\n');
});
test('one event beyond the limit throws, many small ones do not', () => {
  const splitter = new SseSplitter(100);
  for (let i = 0; i < 50; i++) splitter.push(Buffer.from('data: 1234567890\n\n'));
  assert.throws(() => {
    for (let i = 0; i < 50; i++) splitter.push(Buffer.from('1234567890'));
  }, RangeError);
});
test('fields: the name of an event, several data lines, one blank after the colon only', () => {
  assert.deepEqual(readEvent(Buffer.from('event:  x \ndata:a\ndata:  b\nid: 1\n: c\n\n')), { event: 'x', data: 'a\n b' });
  assert.deepEqual(readEvent(Buffer.from(': only\n\n')), { event: '', data: undefined });
});

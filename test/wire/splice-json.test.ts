import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isRecord, parseJson, stringifyJson } from '../../src/wire/json.ts';
import { sameJson } from '../../src/wire/same-json.ts';
import { hasLoneSurrogates, spliceJson } from '../../src/wire/splice-json.ts';

type Fields = Record<string, unknown>;

function splice(text: string, change: (value: Fields) => Fields): string | undefined {
  const value = parseJson(text);
  assert.ok(isRecord(value));
  return spliceJson(change({ ...value }), { bytes: Buffer.from(text), value }, { same: sameJson })?.toString('utf8');
}

test('what nobody changed stays byte for byte: spaces, escapes, numbers as written, the order of members', () => {
  const text =
    '{ "model" : "auto",\n "temperature":1.0, "seed": 9007199254740993, "top_p":1e-1,"messages":[ {"content":"\\u4f60\\/","role":"user"} ],"b":{"2":1,"1":2} }';
  assert.equal(
    splice(text, (body) => body),
    text,
  );
  assert.equal(
    splice(text, (body) => ({ ...body, model: 'gpt-4o' })),
    text.replace('"auto"', '"gpt-4o"'),
  );
});

test('members go and come without a trace', () => {
  const cases: [string, Fields, string][] = [
    ['{"session_id":"s", "a":1.0}', { a: 1 }, '{"a":1.0}'],
    ['{"a":1.0 ,"session_id":"s"}', { a: 1 }, '{"a":1.0}'],
    ['{"a":1.0, "x":1, "b":2}', { a: 1, b: 2 }, '{"a":1.0,"b":2}'],
    ['{ "x":1 }', {}, '{}'],
    ['{}', { a: 'ü' }, '{"a":"ü"}'],
    ['\ufeff {"a":[1.0,2.0]}\n', { a: [0, 1, 2], b: null }, '{"a":[0,1.0,2.0],"b":null}'],
    ['{"a":[1.0,2.0,3.0]}', { a: [1, 3] }, '{"a":[1.0,3.0]}'],
    ['{"a":[1.0]}', { a: [] }, '{"a":[]}'],
    ['{"a":[1.0],"b":1}', { a: undefined, b: 1 }, '{"b":1}'],
  ];
  for (const [text, own, expected] of cases)
    assert.equal(
      splice(text.replace('\ufeff', ''), () => own),
      expected,
      text,
    );
});

test('a name that stands twice, or is no plain one, is not taken apart', () => {
  for (const text of ['{"a":1,"a":2}', '{"a":1,"\\u0061":2}', '{"__proto__":1}'])
    assert.equal(
      splice(text, (body) => body),
      undefined,
    );
});

const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.string({ unit: 'grapheme' }),
    fc.string().map((text) => `${text}"\\`.repeat(20)),
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(
      fc.string().filter((key) => key !== '__proto__'),
      tie('value'),
      { maxKeys: 4 },
    ),
  ),
})).value;
const body = fc.dictionary(
  fc.string().filter((key) => key !== '__proto__'),
  json,
  { maxKeys: 6 },
);

test('whatever is changed, the result says what it should, and what was not changed is as it was', () => {
  fc.assert(
    fc.property(body, body, fc.constantFrom(undefined, 1, '\t'), fc.func(fc.boolean()), (source, more, indent, keeps) => {
      const text = JSON.stringify(source, null, indent);
      const own = { ...Object.fromEntries(Object.entries(source).filter(([key]) => keeps(key))), ...more };
      const spliced = splice(text, () => own);
      assert.ok(spliced !== undefined);
      assert.ok(sameJson(JSON.parse(spliced), JSON.parse(stringifyJson(own))), spliced);
      assert.equal(
        splice(text, (value) => value),
        text,
      );
    }),
    { numRuns: 300 },
  );
});

test('half a surrogate pair is found, a whole one and an escaped backslash are not', () => {
  for (const [text, lone] of [
    ['{"a":"\\ud83d\\ude00"}', false],
    ['{"a":"\\ud83d"}', true],
    ['{"a":"\\uDE00 \\ud83d\\ude00"}', true],
    ['{"a":"\\\\ud83d"}', false],
    ['{"a":"😀"}', false],
  ] as const)
    assert.equal(hasLoneSurrogates(Buffer.from(text)), lone, text);
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { createNameMap } from '../../src/wire/tool-names.ts';

describe('tool names on the wire', () => {
  test('a dot becomes two underscores, and comes back', () => {
    const names = createNameMap(['order.query', 'ping']);
    assert.deepEqual([names.toWire('order.query'), names.toWire('ping')], ['order__query', 'ping']);
    assert.equal(names.fromWire('order__query'), 'order.query');
  });

  test('a name that stands already keeps itself, the other carries a hash', () => {
    const names = createNameMap(['order.query', 'order__query']);
    assert.equal(names.toWire('order__query'), 'order__query');
    assert.match(names.toWire('order.query'), /^order__query_[0-9a-f]{8}$/);
  });

  test('a name that nobody knows comes back as it is', () => assert.equal(createNameMap(['a.b']).fromWire('zzz'), 'zzz'));

  test('any names are legal on the wire, never two the same, and come back', () => {
    const name = fc.oneof(
      fc.constantFrom('a.b', 'a__b', 'a..b', 'a.__b', 'a__.b', 'a:b', 'a;b', '查询', 'x'.repeat(64), 'x'.repeat(65)),
      fc.string({ maxLength: 70 }),
    );
    fc.assert(
      fc.property(fc.uniqueArray(name, { maxLength: 8 }), (list) => {
        const names = createNameMap(list);
        const wire = list.map(names.toWire);
        assert.equal(new Set(wire).size, list.length);
        for (const one of wire) assert.match(one, /^[a-zA-Z0-9_-]{1,64}$/);
        assert.deepEqual(wire.map(names.fromWire), list);
        const turned = createNameMap([...list].reverse());
        assert.deepEqual(list.map(turned.toWire), wire, 'depends on the order');
      }),
      { numRuns: 500 },
    );
  });
});

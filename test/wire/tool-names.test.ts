import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createNameMap } from '../../src/wire/tool-names.ts';

test('any names become legal ones, each its own, and come back', () => {
  const name = fc.oneof(
    fc.string({ minLength: 1, maxLength: 80 }),
    fc.stringMatching(/^[a-c._]{1,6}$/),
    fc.constantFrom('order.query', 'order__query', 'a.b.c', 'a__b.c'),
  );
  fc.assert(
    fc.property(fc.array(name, { maxLength: 8 }), (names) => {
      const map = createNameMap(names);
      const wire = [...new Set(names)].map((one) => map.toWire(one));
      assert.equal(new Set(wire).size, wire.length);
      for (const one of wire) assert.match(one, /^[a-zA-Z0-9_-]{1,64}$/);
      assert.deepEqual(
        wire.map((one) => map.fromWire(one)),
        [...new Set(names)],
      );
      const turned = createNameMap([...names].reverse());
      for (const one of names) assert.equal(turned.toWire(one), map.toWire(one));
    }),
  );
});
test('a dot becomes two underscores, a legal name keeps itself', () => {
  const map = createNameMap(['order.query', 'refund_apply']);
  assert.deepEqual([map.toWire('order.query'), map.toWire('refund_apply'), map.fromWire('never_seen')], ['order__query', 'refund_apply', 'never_seen']);
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { appendMembers } from '../../src/wire/append-members.ts';

describe('members behind those of an object', () => {
  const objects = fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 }).map((value) => JSON.parse(JSON.stringify(value)) as Record<string, unknown>);
  it('are there as well, and nothing else changes', () => {
    fc.assert(
      fc.property(objects, fc.jsonValue(), fc.constantFrom('', ' ', '\r\n'), (value, added, space) => {
        const text = JSON.stringify(value, null, 1) + space;
        const whole = appendMembers(Buffer.from(text), { 'added by us': added }).toString();
        assert.deepEqual(JSON.parse(whole), JSON.parse(JSON.stringify({ ...value, 'added by us': added })));
        assert.ok(whole.startsWith(text.slice(0, text.lastIndexOf('}'))) && whole.endsWith(`}${space}`));
      }),
    );
  });
});

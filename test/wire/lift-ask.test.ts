import assert from 'node:assert/strict';
import { test } from 'node:test';
import { liftAsk } from '../../src/wire/lift-ask.ts';

test('ids may have 256 characters, as people count them', () => {
  for (const name of ['会'.repeat(256), '😀'.repeat(256), 'x'.repeat(256)]) assert.equal(liftAsk({ session_id: name }, {}).ask.sessionId, name);
  for (const name of ['会'.repeat(257), '😀'.repeat(257), 'a\nb']) assert.throws(() => liftAsk({ session_id: name }, {}), { code: 'invalid_value' });
});

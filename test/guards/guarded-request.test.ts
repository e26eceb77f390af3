import assert from 'node:assert/strict';
import { test } from 'node:test';
import { guardRequest } from '../../src/guards/guarded-request.ts';
import { everything, guardSet } from './guard-kit.ts';

const clean = { model: 'm', messages: [{ role: 'user' as const, content: 'hello' }] };

test('what masks one answer knows nothing of another request, also where nothing was found in either', () => {
  const { input } = guardSet(everything);
  const masked = ['4111 1111 1111 1111', '5500-0000-0000-0004'].map((card) => guardRequest(clean, input, () => undefined).vault.mask('card', card));
  assert.deepEqual(masked, ['⟦card_1⟧', '⟦card_1⟧']);
});

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { toStored } from '../../src/access/stored-key.ts';

const all = ['*'];
const KEY = {
  ...{ id: 'k', sha256: 'a', service: 's', services: ['s'], project: 'p', projects: ['p'], admin: false, models: all, tools: all },
  ...{ user_levels: all, priorities: all, passthrough: [], created_at: '2026-01-01', created_by: 'root', expires: '2027-01-01' },
};

it('a stored key is read whole, or not at all', () => {
  assert.deepEqual(toStored(JSON.stringify(KEY)), KEY);
  assert.equal(toStored(undefined), undefined);
  assert.equal(toStored('{"id":'), undefined);
  for (const name of Object.keys(KEY)) assert.equal(toStored(JSON.stringify({ ...KEY, [name]: 1 })), undefined, name);
  assert.equal(toStored(JSON.stringify({ ...KEY, models: [1] })), undefined);
});

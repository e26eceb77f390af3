import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadRegistries } from '../../src/app/registries.ts';
import { BUILT_IN_PROVIDERS } from '../../src/config/inventory.ts';
import { MATCHERS } from '../../src/config/schema-routing.ts';

test('what is known of providers without their folder is what the folder says, and the schema knows every matcher of its folder', async () => {
  const { providers, matchers } = await loadRegistries();
  assert.deepEqual(BUILT_IN_PROVIDERS, Object.fromEntries([...providers].map(([name, { defaults }]) => [name, defaults ?? {}])));
  for (const name of matchers.keys()) assert.ok(MATCHERS.includes(name), name);
});

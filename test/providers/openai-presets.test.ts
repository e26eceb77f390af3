import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parse } from 'yaml';
import { makeConfig } from '../config/make-config.ts';

const page = readFileSync(new URL('../../docs/providers.md', import.meta.url), 'utf8');
const presets = [...page.matchAll(/^## (.+)\n[\s\S]*?```yaml\n([\s\S]*?)```/gm)].map(([, name = '', yaml = '']) => ({ name, yaml }));

test('every preset of docs/providers.md loads', () => {
  assert.equal(presets.length, 9);
  for (const { name, yaml } of presets) {
    const config = makeConfig(parse(yaml));
    for (const model of config.registry.models.values()) assert.match(model.upstreams[0]?.provider ?? '', /^(openai|simulator)$/, name);
  }
});

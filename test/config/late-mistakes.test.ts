import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createHouse } from '../../src/app/house.ts';
import { createConfigReader } from '../../src/app/read-config.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { keepLog } from '../app-kit.ts';
import { temporaryFolder } from '../services.ts';

const MODELS = 'models: [{ id: m, provider: simulator }]\ndefault_model: m\npipeline: { plugins_dir: ./plugins }\n';
const LENGTH = `export default { name: 'length', setup(hermes) {
  hermes.addMatcher('length_over', { modifiers: ['length_unit'], compile(value) {
    if (typeof value !== 'number') throw new Error('length_over wants a number');
    return { test: ({ original }) => ({ hit: original.length > value, why: 'long' }) };
  } });
} };`;
const TEAM = `import { z } from 'zod';
export default { name: 'team', config: z.strictObject({ team: z.string(), limits: z.object({ least: z.number().min(3) }) }) };`;
const ODD = "export default { name: 'odd', config: { parse() { throw new Error('there is\\nno such thing'); } } };";

/** What a start with these files beside `hermes.yaml` says; nothing when it would start. One line a mistake, without the folder. */
async function refusal(yaml: string, plugins: Record<string, string>, files: Record<string, string> = {}): Promise<string[]> {
  const folder = mkdtempSync(join(temporaryFolder(), 'late-'));
  mkdirSync(join(folder, 'plugins'));
  for (const [name, text] of Object.entries(plugins)) writeFileSync(join(folder, 'plugins', name), text);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const { registries, read } = await createConfigReader({
    file: join(folder, 'hermes.yaml'),
    text: (yaml.includes('pipeline:') ? MODELS.replace(/pipeline.*\n/, '') : MODELS) + yaml,
    env: { DATABASE_URL: 'sqlite::memory:' },
  });
  try {
    const house = await createHouse({ loaded: read(), log: keepLog([]), metrics: createMetrics() }, registries);
    await house.close();
    return [];
  } catch (thrown) {
    assert.equal((thrown as Error).name, 'ConfigError', String(thrown));
    return (thrown as Error).message.replaceAll(`${folder}/`, '').split('\n');
  }
}

const RULES = `route_rules:
  - { id: a, model: m, match: { keywrds: [x] } }
  - id: b
    model: m
    match: { any: [{ userlevel: vip }, { not: { length_ovr: 5 } }] }
`;

describe('mistakes in names that plugins may add', () => {
  it('are told with their places and mends once no plugin has added them', async () => {
    assert.deepEqual(await refusal(RULES, { 'length.mjs': LENGTH }), [
      'hermes.yaml:5:33 route_rules[0].match.keywrds: is not a matcher (did you mean `keywords`?)',
      'hermes.yaml:8:22 route_rules[1].match.any[0].userlevel: is not a matcher (did you mean `user_level`?)',
      'hermes.yaml:8:49 route_rules[1].match.any[1].not.length_ovr: is not a matcher (did you mean `length_over`?)',
    ]);
  });

  it('are told beside other mistakes, which keep plugins from being set up, where they look like slips', async () => {
    const provider = 'providers: { openal: { type: openal }, own: { type: acme } }\n';
    assert.deepEqual(await refusal(`server: { prot: 1 }\n${provider}${RULES}`, { 'length.mjs': LENGTH }), [
      'hermes.yaml:4:11 server.prot: is not known here (did you mean `port`?)',
      'hermes.yaml:5:24 providers.openal.type: `openal` is not a provider type (did you mean `openai`?)',
      'hermes.yaml:7:33 route_rules[0].match.keywrds: is not a matcher (did you mean `keywords`?)',
      'hermes.yaml:10:22 route_rules[1].match.any[0].userlevel: is not a matcher (did you mean `user_level`?)',
    ]);
  });

  for (const block of ['shadow: { rules_file: ./next.yaml }\n', 'rollout: { rules_file: ./next.yaml, percent: 50 }\n']) {
    it(`are told of the file that ${block.split(':')[0]} names, where a plugin's matcher is good`, async () => {
      const next = (match: string): Record<string, string> => ({ 'next.yaml': `- { id: n, match: ${match}, model: m }\n` });
      assert.deepEqual(await refusal(block, { 'length.mjs': LENGTH }, next('{ length_over: 5, length_unit: words }')), []);
      assert.deepEqual(await refusal(block, { 'length.mjs': LENGTH }, next('{ length_ovr: 5 }')), [
        'next.yaml:1:21 [0].match.length_ovr: is not a matcher (did you mean `length_over`?)',
      ]);
      assert.deepEqual(await refusal(block, { 'length.mjs': LENGTH }, next('{ any: [{ length_over: many }] }')), [
        'next.yaml:1:29 [0].match.any[0].length_over: length_over wants a number',
      ]);
    });
  }

  it('and so are the values that a plugin’s matcher refuses, all of them', async () => {
    const rules = 'route_rules:\n  - { id: a, model: m, match: { length_over: x } }\n  - { id: b, model: m, match: { all: [{ length_over: y }] } }\n';
    assert.deepEqual(await refusal(rules, { 'length.mjs': LENGTH }), [
      'hermes.yaml:5:33 route_rules[0].match.length_over: length_over wants a number',
      'hermes.yaml:6:41 route_rules[1].match.all[0].length_over: length_over wants a number',
    ]);
  });
});

describe('mistakes in what is said of plugins', () => {
  const plugins = { 'team.mjs': TEAM, 'odd.mjs': ODD };

  it('have their places, one line each, whatever the plugin checks its block with', async () => {
    const yaml = 'plugins:\n  team: { team: 5, limits: { least: 1 }, tema: x }\n  odd: {}\n';
    assert.deepEqual(await refusal(yaml, plugins), [
      'hermes.yaml:5:11 plugins.team.team: Invalid input: expected string, received number',
      'hermes.yaml:5:30 plugins.team.limits.least: Too small: expected number to be >=3',
      'hermes.yaml:5:42 plugins.team.tema: is not known here',
      'hermes.yaml:6:3 plugins.odd: there is no such thing',
    ]);
  });

  it('name what was probably meant where there is no such plugin, and what may be wrong beside', async () => {
    const said = await refusal(`plugins: { taem: {} }\nroute_rules: [{ id: a, model: m, match: { keywrds: [x] } }]\n`, {
      'team.mjs': TEAM.replace('.strictObject', '.any'),
    });
    assert.deepEqual(said, [
      'hermes.yaml:4:12 plugins.taem: configures a plugin that does not exist (did you mean `team`?)',
      'hermes.yaml:5:43 route_rules[0].match.keywrds: is not a matcher (did you mean `keywords`?)',
    ]);
  });

  it('and so have names in pipeline.order, and a folder that is written down and is not there', async () => {
    assert.deepEqual(await refusal('pipeline: { order: [limits, aut] }\n', {}), [
      'hermes.yaml:3:29 pipeline.order[1]: names the plugin "aut", which does not exist (did you mean `auth`?)',
    ]);
    const [gone] = await refusal('pipeline: { plugins_dir: ./plugin }\n', {});
    assert.match(gone ?? '', /^hermes\.yaml:3:13 pipeline\.plugins_dir: plugin: there is no such folder$/);
    const [file] = await refusal('pipeline: { plugins_dir: ./file }\n', {}, { file: '' });
    assert.match(file ?? '', /pipeline\.plugins_dir: file: is a file, not a folder$/);
  });
});

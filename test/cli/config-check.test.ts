import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { temporaryFolder } from '../services.ts';

const run = promisify(execFile);
const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const TSX = import.meta.resolve('tsx');
const BASE = 'models: [{ id: m, provider: simulator }]\ndefault_model: m\n';
const FOLDER = 'pipeline: { plugins_dir: ./plugins }\n';
const WEATHER = `export default { name: 'weather', setup(hermes) {
  hermes.addTool({ id: 'sky.look', run: () => 'blue' });
  hermes.addMatcher('weather', { compile: () => ({ test: () => true, explain: () => ({ hit: true, why: '' }) }) });
} };`;

/** What a command says of a file, with these plugins beside it. */
async function check(yaml: string, plugins: Record<string, string> = {}, words = ['config', 'check']): Promise<string> {
  const folder = mkdtempSync(join(temporaryFolder(), 'check-'));
  mkdirSync(join(folder, 'plugins'));
  for (const [name, text] of Object.entries(plugins)) writeFileSync(join(folder, 'plugins', name), text);
  writeFileSync(join(folder, 'hermes.yaml'), BASE + yaml);
  const command = ['--import', TSX, MAIN, ...words, '--config', join(folder, 'hermes.yaml')];
  return run(process.execPath, command, { cwd: folder, env: { PATH: process.env.PATH, REDIS_URL: 'redis://127.0.0.1:1' } }).then(
    ({ stdout }) => `exit 0: ${stdout}`,
    (failed: { code: number; stdout: string; stderr: string }) => `exit ${failed.code}: ${failed.stdout}${failed.stderr}`,
  );
}

describe('hermes config check', () => {
  it('takes what plugins add for good', async () => {
    const rules = 'route_rules: [{ id: r, match: { weather: rain }, model: m, tools: [sky.look, sky.lok] }]\n';
    const said = await check(FOLDER + rules, { 'weather.mjs': WEATHER });
    assert.match(said, /^exit 0: .*hermes\.yaml: good \(1 models, 1 rules/s);
    assert.deepEqual(said.match(/nothing defines .*/g), ['nothing defines the tool `sky.lok`: it will not be available (did you mean `sky.look`?)']);
  });

  it('tells what no plugin has added with its place', async () => {
    const rules = 'route_rules: [{ id: r, match: { weathr: rain }, model: m }]\n';
    assert.match(
      await check(FOLDER + rules, { 'weather.mjs': WEATHER }),
      /^exit 1: \S+hermes\.yaml:4:33 route_rules\[0\]\.match\.weathr: is not a matcher \(did you mean `weather`\?\)\n$/,
    );
  });

  it('finds what would stop the start in plugins, their settings and their order, and names the file', async () => {
    const said = await Promise.all([
      check('pipeline: { order: [nosuch] }\n'),
      check('plugins: { nosuch: { a: 1 } }\n'),
      check(FOLDER, { 'broken.mjs': 'throw new Error("on load");' }),
    ]);
    for (const text of said) assert.match(text, /^exit 1: .*hermes\.yaml:/s);
    assert.match(said.join('\n'), /names the plugin "nosuch".*configures a plugin that does not exist.*broken\.mjs/s);
  });
});

describe('hermes route lint', () => {
  const rules = `${FOLDER}route_rules: [{ id: r, match: { weather: rain }, model: m, tools: [sky.look] }, { id: all, match: .*, model: m, tools: [sky.lok] }]\n`;
  it('knows the matchers and tools that plugins add', async () => {
    const said = await check(rules, { 'weather.mjs': WEATHER }, ['route', 'lint']);
    assert.match(said, /^exit 0: .*nothing defines the tool sky\.lok; did you mean sky\.look/s);
    assert.doesNotMatch(said, /matcher|tool sky\.look/);
  });
  it('looks at the rules alone where the rest of the file, or a plugin, is of no use', async () => {
    for (const [more, plugin] of [
      ['nonsense: 1\n', WEATHER],
      ['', 'throw new Error("on load");'],
    ] as const)
      assert.match(await check(rules + more, { 'weather.mjs': plugin }, ['route', 'lint']), /^exit 1: .*weather/s);
  });
});

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
  hermes.addMatcher('weather', { compile: () => ({ test: () => true, explain: () => ({ hit: true, why: '' }) }) });
} };`;

/** What is said of a file, with these plugins beside it. */
async function check(yaml: string, plugins: Record<string, string> = {}): Promise<string> {
  const folder = mkdtempSync(join(temporaryFolder(), 'check-'));
  mkdirSync(join(folder, 'plugins'));
  for (const [name, text] of Object.entries(plugins)) writeFileSync(join(folder, 'plugins', name), text);
  writeFileSync(join(folder, 'hermes.yaml'), BASE + yaml);
  const command = ['--import', TSX, MAIN, 'config', 'check', '--config', join(folder, 'hermes.yaml')];
  return run(process.execPath, command, { cwd: folder, env: { PATH: process.env.PATH, REDIS_URL: 'redis://127.0.0.1:1' } }).then(
    ({ stdout }) => `exit 0: ${stdout}`,
    (failed: { code: number; stderr: string }) => `exit ${failed.code}: ${failed.stderr}`,
  );
}

describe('hermes config check', () => {
  it('takes what plugins add for good', async () => {
    const rules = 'route_rules: [{ id: r, match: { weather: rain }, model: m }]\n';
    assert.match(await check(FOLDER + rules, { 'weather.mjs': WEATHER }), /^exit 0: .*hermes\.yaml: good \(1 models, 1 rules/s);
  });

  it('finds what would stop the start in plugins, their settings and their order, and names the file', async () => {
    const said = await Promise.all([
      check('pipeline: { order: [nosuch] }\n'),
      check('plugins: { nosuch: { a: 1 } }\n'),
      check(FOLDER, { 'broken.mjs': 'throw new Error("on load");' }),
    ]);
    for (const text of said) assert.match(text, /^exit 1: .*hermes\.yaml: /s);
    assert.match(said.join('\n'), /names the plugin "nosuch".*configures a plugin that does not exist.*broken\.mjs/s);
  });
});

// Runs every suite: node scripts/test.mjs [path …]. Compiles first, since some suites start the built product.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const filesIn = (path) =>
  statSync(path).isDirectory() ? readdirSync(path).flatMap((name) => filesIn(join(path, name))) : path.endsWith('.test.ts') ? [path] : [];
const wanted = process.argv.slice(2);
const files = (wanted.length > 0 ? wanted.map((path) => join(root, path)) : [join(root, 'test')]).flatMap(filesIn).map((file) => relative(root, file));

execFileSync(process.execPath, ['scripts/build.mjs'], { cwd: root, stdio: 'inherit' });
if (existsSync(join(root, 'scripts', 'services'))) spawnSync(join(root, 'scripts', 'services'), { cwd: root, stdio: 'inherit' });
const folder = mkdtempSync(join(tmpdir(), 'hermes-failed-'));
const runTests = (list, concurrency) => {
  const failed = join(folder, `failed-${concurrency}`);
  const reporters = [
    '--test-reporter=tap',
    '--test-reporter-destination=stdout',
    '--test-reporter=./scripts/failed-files.mjs',
    `--test-reporter-destination=${failed}`,
  ];
  const { status } = spawnSync(
    process.execPath,
    ['--import', 'tsx', '--test', `--test-concurrency=${concurrency}`, '--test-timeout=180000', ...reporters, ...list],
    {
      cwd: root,
      stdio: 'inherit',
    },
  );
  return {
    status: status ?? 1,
    failed: readFileSync(failed, 'utf8')
      .split('\n')
      .filter((file) => /\.test\.ts$/.test(file)),
  };
};

let { status, failed } = runTests(files, 2);
// Suites kill servers and freeze stores beside one another on two cores: what failed then gets the machine to itself, once, and is named.
if (status !== 0 && failed.length > 0 && failed.length <= 12) {
  console.log(`\nFAILED, and run once more alone:\n${failed.map((file) => `  ${relative(root, file)}`).join('\n')}\n`);
  ({ status } = runTests(failed, 1));
}
rmSync(folder, { recursive: true, force: true });
process.exit(status);

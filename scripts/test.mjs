// Runs every suite: node scripts/test.mjs [path …]. Compiles first, since some suites start the built product.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const filesIn = (path) =>
  statSync(path).isDirectory() ? readdirSync(path).flatMap((name) => filesIn(join(path, name))) : path.endsWith('.test.ts') ? [path] : [];
const wanted = process.argv.slice(2);
const files = (wanted.length > 0 ? wanted.map((path) => join(root, path)) : [join(root, 'test')]).flatMap(filesIn).map((file) => relative(root, file));

execFileSync(process.execPath, ['scripts/build.mjs'], { cwd: root, stdio: 'inherit' });
if (existsSync(join(root, 'scripts', 'services'))) spawnSync(join(root, 'scripts', 'services'), { cwd: root, stdio: 'inherit' });
const { status } = spawnSync(process.execPath, ['--import', 'tsx', '--test', '--test-concurrency=2', '--test-timeout=180000', ...files], {
  cwd: root,
  stdio: 'inherit',
});
process.exit(status ?? 1);

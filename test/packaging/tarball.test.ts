import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'hermes-pack-'));
const home = join(folder, 'home');
/** As root the product is started as `nobody`; anybody else is ordinary already. */
const ordinary = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
const npm = { cwd: home, maxBuffer: 1 << 26, timeout: 150_000 };

interface Packed {
  filename: string;
  size: number;
  unpackedSize: number;
  files: { path: string }[];
}

/** Undefined when the registry is not to be reached and the cache has not got everything. */
async function install(tarball: string): Promise<string | undefined> {
  const args = ['install', '--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts', '--fetch-retries=1', '--fetch-timeout=30000', tarball];
  try {
    await run('npm', args, npm);
    return undefined;
  } catch (thrown) {
    const { stderr = '' } = thrown as { stderr?: string };
    if (!/ENOTFOUND|ECONNREFUSED|EAI_AGAIN|ETIMEDOUT|ENETUNREACH|ENOTCACHED|E40[13]|network/.test(stderr)) throw thrown;
    return stderr.split('\n')[0];
  }
}

function chownAll(path: string, uid: number, gid: number): void {
  for (const entry of readdirSync(path, { recursive: true, withFileTypes: true }))
    if (!entry.isSymbolicLink()) chownSync(join(entry.parentPath, entry.name), uid, gid);
  chownSync(path, uid, gid);
}

describe('the package', { timeout: 240_000 }, () => {
  let packed: Packed;
  let missing: string | undefined;
  before(async () => {
    if (!existsSync(join(root, 'dist/src/main.js'))) await run(process.execPath, ['scripts/build.mjs'], { cwd: root });
    mkdirSync(home);
    // Scripts would build again, under the feet of other suites.
    const { stdout } = await run('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', folder], { cwd: root, maxBuffer: 1 << 26 });
    packed = (JSON.parse(stdout) as [Packed])[0];
    missing = await install(join(folder, packed.filename));
    if (missing !== undefined) console.error(`\nSKIPPED: the package was not installed, for the registry cannot be reached (${missing})\n`);
    if (ordinary.uid !== undefined) {
      chownSync(folder, ordinary.uid, ordinary.gid);
      chownAll(home, ordinary.uid, ordinary.gid);
    }
  });
  after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));

  it('holds the program and its manual, and no source, test or secret', () => {
    const paths = packed.files.map(({ path }) => path);
    for (const path of [
      'dist/src/main.js',
      'dist/src/app.d.ts',
      'dist/src/contracts/index.d.ts',
      'dist/plugins/auth.js',
      'dist/console/index.html',
      'dist/console/uplot.js',
      'dist/console/uplot.css',
      'config/demo.yaml',
      'config/hermes.yaml',
      'config/hermes.schema.json',
      'plugins/README.md',
      'README.md',
      'LICENSE',
    ])
      assert.ok(paths.includes(path), path);
    assert.deepEqual(
      paths.filter((path) => /^(src|test|bench|scripts|deploy|data|node_modules)\/|\.map$|\.env|\.db$|\.tgz$/.test(path)),
      [],
    );
    assert.ok(packed.size < 2_000_000, `${packed.size} bytes`);
  });
  it('answers from an empty folder, as an ordinary user, without a development dependency', async (t) => {
    if (missing !== undefined) return t.skip(missing);
    const dev = Object.keys((JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { devDependencies: object }).devDependencies);
    const installed = dev.filter((name) => existsSync(join(home, 'node_modules', name)) && !name.startsWith('@types/'));
    assert.deepEqual(installed, []);
    const child = spawn('npx', ['--no-install', 'hermes', 'demo', '--port', '0', '--host', '127.0.0.1'], {
      cwd: home,
      ...ordinary,
      detached: true,
      env: { PATH: process.env.PATH, HOME: home, npm_config_cache: join(home, '.npm'), npm_config_update_notifier: 'false' },
    });
    try {
      await chatWith(child);
    } finally {
      if (child.exitCode === null) process.kill(-(child.pid as number), 'SIGKILL');
    }
  });
  it('can be imported: the app, and what plugins need', async (t) => {
    if (missing !== undefined) return t.skip(missing);
    const script =
      "const [app, plugin] = await Promise.all([import('hermes-agent'), import('hermes-agent/plugin')]); console.log(typeof app.createApp, typeof plugin.definePlugin, typeof plugin.HermesError)";
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script], { cwd: home, ...ordinary });
    assert.equal(stdout.trim(), 'function function function');
  });
  it('has one program under two names', async (t) => {
    if (missing !== undefined) return t.skip(missing);
    const versions = await Promise.all(
      ['hermes', 'hermes-cli'].map((name) => run(join(home, 'node_modules/.bin', name), ['--version'], { cwd: home, ...ordinary })),
    );
    assert.deepEqual(
      versions.map(({ stdout }) => stdout.trim()),
      Array(2).fill((JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }).version),
    );
  });
});

/** What the demo prints can be pasted. */
async function chatWith(child: ChildProcess): Promise<void> {
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (data) => (said += data));
  for (const end = performance.now() + 30_000; !said.includes('Try it:') || !/-d '.*'/.test(said); await new Promise((done) => setTimeout(done, 50))) {
    assert.ok(performance.now() < end && child.exitCode === null, `no invitation in: ${said}`);
  }
  const address = /curl (\S+)/.exec(said)?.[1] ?? '';
  const key = /Bearer ([^']+)/.exec(said)?.[1] ?? '';
  const body = /-d '(.*)'/.exec(said)?.[1] ?? '';
  const response = await fetch(address, { method: 'POST', body, headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' } });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  assert.equal(response.headers.get('x-hermes-route'), 'order_query');
  const gone = once(child, 'exit');
  process.kill(-(child.pid as number), 'SIGTERM');
  await gone;
}

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

const read = (name: string): string => readFileSync(fileURLToPath(new URL(`../../${name}`, import.meta.url)), 'utf8');
const page = read('docs/dependencies.md');
interface Locked {
  dev?: boolean;
  license?: string;
}

describe('docs/dependencies.md', () => {
  const { dependencies } = JSON.parse(read('package.json')) as { dependencies: Record<string, string> };
  const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, Locked> };
  const installed = Object.entries(packages).filter(([path, { dev }]) => path !== '' && !dev);

  it('says of every runtime dependency what it saves, and of none that is not there', () => {
    const table = page.slice(0, page.indexOf('## Size'));
    const rows = table.split('\n').filter((line) => line.startsWith('| `'));
    for (const name of Object.keys(dependencies)) {
      // Several of one family share a row.
      const short = name.replace('@opentelemetry/', '');
      assert.ok(
        rows.some((row) => row.split('|')[1]?.includes(`\`${name}\``) || row.split('|')[1]?.includes(`\`${short}\``)),
        `${name} is not justified`,
      );
    }
    for (const row of rows) {
      const cell = row.split('|')[1] ?? '';
      const [, name = ''] = /`([^`]+)`/.exec(cell) ?? [];
      assert.ok(name in dependencies || cell.includes('development'), `${name} is no dependency`);
    }
  });
  it('counts the licences as the lock file has them, and there is no other', () => {
    const counted = new Map<string, number>();
    for (const [, { license = 'none' }] of installed) counted.set(license, (counted.get(license) ?? 0) + 1);
    const told = [...page.matchAll(/^\| ([\w.-]+) \| (\d+) \|/gm)].map(([, licence = '', count]) => [licence, Number(count)] as const);
    assert.deepEqual(Object.fromEntries(told), Object.fromEntries(counted));
    assert.match(page, new RegExp(`are ${installed.length + 1} packages and`));
  });
  it('runs nothing on install', () => {
    const scripted = Object.entries(packages).filter(([, entry]) => 'hasInstallScript' in entry && !entry.dev);
    assert.deepEqual(
      scripted.map(([path]) => path),
      [''].filter((path) => 'hasInstallScript' in (packages[path] ?? {})),
    );
  });
});

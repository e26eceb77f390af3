import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string): string => readFileSync(`${root}${path}`, 'utf8');
const sources = ['src', 'plugins'].flatMap((folder) =>
  readdirSync(`${root}${folder}`, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => `${folder}/${name}`),
);

describe('the documents', () => {
  it('name every metric of the code, and none that is not there', () => {
    const inCode = sources.flatMap((path) =>
      [...read(path).matchAll(/\.(counter|gauge|histogram)\(\s*'(hermes_[a-z_]+)'/g)].map(([, type, name]) => `${name} ${type}`),
    );
    const told = [...read('docs/metrics.md').matchAll(/^\| `(hermes_[a-z_]+)` \| (counter|gauge|histogram) \|/gm)].map(([, name, type]) => `${name} ${type}`);
    assert.ok(inCode.length > 30);
    assert.deepEqual(told.toSorted(), [...new Set(inCode)].toSorted());
  });
  it('are all to be found from the README', () => {
    const readme = read('README.md');
    const missing = readdirSync(`${root}docs`).filter((name) => name.endsWith('.md') && !readme.includes(`(docs/${name})`));
    assert.deepEqual(missing, []);
  });
});

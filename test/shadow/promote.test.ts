import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { unifiedDiff } from '../../src/cli/unified-diff.ts';
import { replaceRules } from '../../src/routing/rules-text.ts';

const CONFIG = `# the whole
models: [{ id: a, provider: simulator }]
route_rules:
  # orders
  - id: order
    match: { keywords: [订单] } # short
    model: a

  - { id: rest, match: '.*', model: a }

# what comes after
default_model: a
`;
const NEXT = `route_rules:
    # orders and parcels
    - id: order
      match:
        keywords: [订单, 包裹]
      model: a # as before
    - { id: rest, match: '.*', model: a }
`;

describe('rules in the place of others', () => {
  it('come with their comments and their way of writing, and leave the rest of the file alone', () => {
    assert.equal(
      replaceRules(CONFIG, NEXT),
      CONFIG.replace(
        / {2}# orders\n[\s\S]*model: a }\n/,
        "  # orders and parcels\n  - id: order\n    match:\n      keywords: [订单, 包裹]\n    model: a # as before\n  - { id: rest, match: '.*', model: a }\n",
      ),
    );
  });
  it('are found whatever the two files are written in', () => {
    const bare = "- { id: one, match: '.*', model: a }\n";
    const files = [
      CONFIG,
      JSON.stringify({ route_rules: [{ id: 'x' }], default_model: 'a' }, null, 2),
      'default_model: a\n',
      'route_rules: [{ id: x }]\ndefault_model: a\n',
      'route_rules:\n- id: x\ndefault_model: a',
    ];
    for (const file of files) {
      for (const rules of [
        bare,
        `route_rules:\n${bare}`,
        `x: 1\nroute_rules: [{ id: one, match: '.*', model: a }]\ny: 2\n`,
        JSON.stringify([{ id: 'one', match: '.*', model: 'a' }]),
      ]) {
        const replaced = replaceRules(file, rules);
        assert.match(replaced, /one/);
        assert.match(replaced, /default_model"?: "?a/);
        assert.doesNotMatch(replaced, /订单|id: x|"x"/);
      }
    }
  });
  it('that lean on anchors of their own file are refused', () => {
    assert.throws(() => replaceRules(CONFIG, 'base: &m { model: a }\nroute_rules:\n  - { <<: *m, id: x, match: .* }\n'));
    assert.throws(() => replaceRules(CONFIG, 'something: else\n'), /holds no `route_rules:`/);
  });
});

describe('the diff', () => {
  it('is what git apply takes, whatever the two texts are', () => {
    const folder = mkdtempSync(join(tmpdir(), 'hermes-diff-'));
    execFileSync('git', ['init', '-q'], { cwd: folder });
    const text = fc
      .array(fc.constantFrom('a', 'b', '', '  - c', '中'), { maxLength: 25 })
      .chain((lines) => fc.constantFrom(lines.join('\n'), `${lines.join('\n')}\n`));
    fc.assert(
      fc.property(text, text, (before, after) => {
        const diff = unifiedDiff(before, after, 'file');
        if (before === after) return assert.equal(diff, '');
        // An empty file and one that is not there are two things to git.
        fc.pre(before !== '' && after !== '');
        writeFileSync(join(folder, 'file'), before);
        const ran = spawnSync('git', ['apply', '--unidiff-zero', '--whitespace=nowarn', '-'], { cwd: folder, input: diff, encoding: 'utf8' });
        assert.equal(ran.status, 0, `${ran.stderr}\n${diff}`);
        assert.equal(readFileSync(join(folder, 'file'), 'utf8'), after);
      }),
      { numRuns: 25 },
    );
  });
});

describe('shadow promote', () => {
  const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
  const run = (folder: string, ...args: string[]) =>
    spawnSync(process.execPath, ['--import', import.meta.resolve('tsx'), main, 'shadow', 'promote', ...args], {
      cwd: folder,
      encoding: 'utf8',
      env: { PATH: process.env.PATH ?? '', DATABASE_URL: 'sqlite::memory:' },
    });
  it('prints what patch takes; after it the candidate’s rules are live', () => {
    const folder = mkdtempSync(join(tmpdir(), 'hermes-promote-'));
    const config = `${CONFIG}shadow: { rules_file: next.yaml }\n`;
    writeFileSync(join(folder, 'hermes.yaml'), config);
    writeFileSync(join(folder, 'next.yaml'), NEXT);
    const ran = run(folder, '--config', 'hermes.yaml');
    assert.equal(ran.status, 0, ran.stderr);
    assert.match(ran.stderr, /changed order/);
    execFileSync('git', ['init', '-q'], { cwd: folder });
    execFileSync('git', ['apply', '-'], { cwd: folder, input: ran.stdout });
    assert.equal(readFileSync(join(folder, 'hermes.yaml'), 'utf8'), replaceRules(config, NEXT));
    const again = run(folder, '--config', 'hermes.yaml');
    assert.deepEqual([again.status, again.stdout, again.stderr], [0, '', 'The rules are the same.\n']);
  });
  it('hands out nothing that would be refused on load', () => {
    const folder = mkdtempSync(join(tmpdir(), 'hermes-promote-'));
    writeFileSync(join(folder, 'hermes.yaml'), CONFIG);
    assert.match(run(folder, '--config', 'hermes.yaml').stderr, /neither shadow nor rollout/);
    writeFileSync(join(folder, 'wrong.yaml'), '- { id: x, match: .*, model: nobody }\n');
    const ran = run(folder, '--config', 'hermes.yaml', '--rules', 'wrong.yaml');
    assert.deepEqual([ran.status, ran.stdout], [1, '']);
    assert.match(ran.stderr, /`nobody` is not a model/);
  });
});

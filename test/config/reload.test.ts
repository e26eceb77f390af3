import assert from 'node:assert/strict';
import { mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type LoadedConfig, loadConfig } from '../../src/config/load.ts';
import { createReloader, type ReloadResult } from '../../src/config/reload.ts';

const yaml = (rule: string, extra = '') => `models: [{ id: a, provider: simulator }]\nroute_rules: [{ id: ${rule}, match: .*, model: a }]\n${extra}`;

function start(t: TestContext, { apply, link, pollMs }: { apply?: (loaded: LoadedConfig) => Promise<void>; link?: boolean; pollMs?: number } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'hermes-reload-'));
  const real = join(folder, link ? 'v1.yaml' : 'hermes.yaml');
  const file = join(folder, 'hermes.yaml');
  writeFileSync(real, yaml('first'));
  if (link) symlinkSync(real, file);
  const load = (generatedKey?: string) => loadConfig({ file, env: {}, ...(generatedKey === undefined ? {} : { generatedKey }) });
  const results: ReloadResult[] = [];
  const current = load();
  const state = { folder, file, results, current };
  const reloader = createReloader({
    current,
    load,
    apply: async (loaded) => {
      await apply?.(loaded);
      state.current = loaded;
    },
    onReload: (result) => results.push(result),
    debounceMs: 30,
    pollMs: pollMs ?? 5000,
  });
  reloader.watch();
  t.after(() => {
    reloader.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const rule = () => state.current.config.route_rules[0]?.id;
  const until = async (holds: () => boolean) => {
    for (const end = performance.now() + 5000; !holds() && performance.now() < end; ) await sleep(10);
    assert.ok(holds(), JSON.stringify(results));
  };
  return Object.assign(state, { reloader, rule, until });
}

test('a saved file is swapped in', async (t) => {
  const s = start(t);
  writeFileSync(s.file, yaml('second'));
  await s.until(() => s.rule() === 'second');
  assert.deepEqual(s.results.at(-1), { outcome: 'ok', cause: 'file', warnings: s.results.at(-1)?.warnings, mistakes: [] });
});

test('a file written by rename is swapped in, again and again', async (t) => {
  const s = start(t);
  for (const name of ['second', 'third']) {
    writeFileSync(`${s.file}.new`, yaml(name));
    renameSync(`${s.file}.new`, s.file);
    await s.until(() => s.rule() === name);
  }
});

test('a link that is swapped, as Kubernetes does, is followed', async (t) => {
  const s = start(t, { link: true });
  writeFileSync(join(s.folder, 'v2.yaml'), yaml('second'));
  symlinkSync(join(s.folder, 'v2.yaml'), `${s.file}.new`);
  renameSync(`${s.file}.new`, s.file);
  await s.until(() => s.rule() === 'second');
});

test('a bad file is refused with its mistakes, the old one stays, and a good one is taken again', async (t) => {
  const s = start(t);
  for (const [content, mistake] of [
    ['models: [ {', /is not valid YAML/],
    ['', /is empty/],
    [yaml('second').replace('model: a', 'model: nobody'), /`nobody` is not a model/],
  ] as const) {
    const before = s.results.length;
    writeFileSync(s.file, content);
    await s.until(() => s.results.length > before && s.results.at(-1)?.outcome === 'refused' && mistake.test(s.results.at(-1)?.mistakes.join(' ') ?? ''));
    assert.equal(s.rule(), 'first');
  }
  writeFileSync(s.file, yaml('third'));
  await s.until(() => s.rule() === 'third');
});

test('a file that is gone is no configuration: nothing happens until it is back', async (t) => {
  const s = start(t);
  unlinkSync(s.file);
  await sleep(150);
  assert.equal(s.results.length, 0);
  writeFileSync(s.file, yaml('second'));
  await s.until(() => s.rule() === 'second');
});

test('a touch without a change reloads nothing', async (t) => {
  const s = start(t);
  writeFileSync(s.file, yaml('first'));
  await sleep(150);
  assert.equal(s.results.length, 0);
});

test('what cannot be applied is refused', async (t) => {
  const s = start(t, { apply: () => Promise.reject(new Error('the plugin x does not load')) });
  const result = await s.reloader.reload('admin');
  assert.deepEqual([result.outcome, result.cause, result.mistakes], ['refused', 'admin', ['the plugin x does not load']]);
});

test('reloads run one after the other, the last one wins', async (t) => {
  let running = 0;
  const s = start(t, {
    apply: async () => {
      running++;
      assert.equal(running, 1);
      await sleep(20);
      running--;
    },
  });
  const both = [s.reloader.reload('admin')];
  writeFileSync(s.file, yaml('second'));
  both.push(s.reloader.reload('signal'));
  for (const result of await Promise.all(both)) assert.equal(result.outcome, 'ok');
  assert.equal(s.rule(), 'second');
});

test('the key that was made for this run outlives a reload', async (t) => {
  const s = start(t);
  const { generatedKey } = s.current;
  await s.reloader.reload('admin');
  assert.ok(generatedKey !== undefined && s.current.generatedKey === generatedKey);
});

test('a rules file that the new configuration names is watched from then on', async (t) => {
  const s = start(t);
  const rules = join(s.folder, 'next.yaml');
  writeFileSync(rules, '[{ id: one, match: .*, model: a }]');
  writeFileSync(s.file, yaml('second', 'shadow: { rules_file: next.yaml }\n'));
  await s.until(() => s.current.config.shadow?.rules[0]?.id === 'one');
  writeFileSync(rules, '[{ id: two, match: .*, model: a }]');
  await s.until(() => s.current.config.shadow?.rules[0]?.id === 'two');
});

test('nothing is reloaded after close', async (t) => {
  const s = start(t, { pollMs: 20 });
  s.reloader.close();
  writeFileSync(s.file, yaml('second'));
  await sleep(120);
  assert.equal(s.results.length, 0);
});

test('what takes a restart is warned of, without its value, until it is as it was', async (t) => {
  const s = start(t);
  writeFileSync(
    s.file,
    yaml('second', 'server: { port: 9999, keep_alive_timeout_ms: 1000, drain_timeout_ms: 5 }\nredis: { key_prefix: "x:" }\nlog: { level: debug }\n'),
  );
  await s.until(() => s.rule() === 'second');
  const warned = (): string[] => (s.results.at(-1)?.warnings ?? []).filter((text) => text.includes('restart'));
  assert.deepEqual(
    warned().map((text) => text.split(' ')[0]),
    ['server.port', 'server.keep_alive_timeout_ms', 'redis.key_prefix', 'log.level'],
  );
  assert.doesNotMatch(warned().join(), /9999|x:/);
  writeFileSync(s.file, yaml('third', 'log: { level: debug }'));
  await s.until(() => s.rule() === 'third');
  assert.equal(warned().length, 1);
  writeFileSync(s.file, yaml('fourth'));
  await s.until(() => s.rule() === 'fourth');
  assert.deepEqual(warned(), []);
});

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { ReplayReport } from '../../src/routing/replay.ts';
import { startApp, user } from '../app-kit.ts';
import { createFakeUpstream, USAGE } from '../fake-upstream.ts';

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
async function replay(...args: string[]): Promise<string> {
  const command = ['--import', import.meta.resolve('tsx'), main, 'route', 'replay', ...args];
  const { stdout } = await promisify(execFile)(process.execPath, command, {
    env: { PATH: process.env.PATH ?? '', DATABASE_URL: 'sqlite::memory:', UP: 'sk-up' },
  });
  return stdout;
}

test('route replay tells what other rules would change in route, model and money for the recorded requests', async (t) => {
  const upstream = await createFakeUpstream();
  t.after(() => upstream.close());
  const model = (id: string, price?: number) => ({
    id,
    provider: 'openai',
    model_name: id,
    api_base: upstream.url,
    api_key_env: 'UP',
    ...(price !== undefined && { pricing: { input_per_million: price, output_per_million: 2 * price } }),
  });
  const config = {
    models: [model('cheap', 1), model('dear', 10), model('unpriced')],
    default_model: 'cheap',
    route_rules: [
      { id: 'order', match: { keywords: ['order'] }, model: 'cheap' },
      { id: 'vip', match: { user_level: 'vip' }, model: 'dear' },
      { id: 'rest', match: '.*', model: 'default_model' },
    ],
    trace: { capture_content: true },
    // By day and night: the model of the recording is this one, which is no rule's doing.
    cost: { timezone: 'UTC', schedule: [{ id: 'always', hours: '00:00-24:00', routes: ['vip'], model: 'cheap' }] },
  };
  const running = await startApp(config, { env: { UP: 'sk-up' } });
  t.after(() => running.stop());
  const asked: object[] = [
    { messages: user('my order') },
    { messages: user('my parcel') },
    { messages: user('my parcel'), stream: true },
    { messages: user('hello') },
    { messages: user('hello'), user_level: 'vip' },
    { messages: user('hello'), model: 'dear' },
    { messages: user('poem') },
  ];
  for (const body of asked) assert.equal((await running.chat(body)).status, 200);
  const traces = join(running.folder, 'traces.ndjson');
  writeFileSync(traces, (await running.fetch('/admin/traces?format=ndjson')).text);
  const rules = join(running.folder, 'next.yaml');
  writeFileSync(
    rules,
    JSON.stringify([
      { id: 'order', match: { keywords: ['order', 'parcel'] }, model: 'dear' },
      { id: 'vip', match: { user_level: 'vip' }, model: 'dear' },
      { id: 'poem', match: { keywords: ['poem'] }, model: 'unpriced' },
      { id: 'rest', match: '.*', model: 'default_model' },
    ]),
  );
  const file = join(running.folder, 'hermes.yaml');
  const report = JSON.parse(await replay('--traces', traces, '--rules', rules, '--config', file, '--json')) as ReplayReport;
  const call = (price: number) => 1_000 * price * (USAGE.prompt_tokens + 2 * USAGE.completion_tokens);
  assert.deepEqual([report.decided, report.explicit, report.other_route, report.other_model, report.unpriced], [6, 1, 3, 4, 1]);
  assert.deepEqual(
    report.changes.map(({ examples, ...change }) => ({ ...change, examples: examples.length })),
    [
      {
        from_route: 'rest',
        to_route: 'order',
        from_model: 'cheap',
        to_model: 'dear',
        requests: 2,
        before_nano_usd: 2 * call(1),
        after_nano_usd: 2 * call(10),
        examples: 1,
      },
      { from_route: 'rest', to_route: 'poem', from_model: 'cheap', to_model: 'unpriced', requests: 1, before_nano_usd: 0, after_nano_usd: 0, examples: 1 },
      {
        from_route: 'order',
        to_route: 'order',
        from_model: 'cheap',
        to_model: 'dear',
        requests: 1,
        before_nano_usd: call(1),
        after_nano_usd: call(10),
        examples: 1,
      },
    ],
  );
  // The schedule's model of then is what was paid; the rule itself has not changed.
  assert.deepEqual([report.before_nano_usd, report.after_nano_usd], [5 * call(1), 3 * call(10) + 2 * call(1)]);
  const printed = await replay('--traces', traces, '--rules', rules, '--config', file);
  assert.match(
    printed,
    /^6 requests decided again by .*; 1 named their model or were refused\n3 by another rule, 4 for another model\nmoney {2}0\.000100 → 0\.000640 USD/,
  );
  assert.match(printed, /rest → order {2}2 {2}cheap → dear {2}0\.000040 → 0\.000400 USD\n {2}· my parcel/);
});

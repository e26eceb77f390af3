import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { RolloutReport, ShadowReport } from '../../src/contracts/shadow.ts';
import { KEY, startApp, user } from '../app-kit.ts';
import { createFakeUpstream } from '../fake-upstream.ts';

test('a rollout is reported like a shadow: both arms as they served, pair by pair, with what the other rules would have said', async (t) => {
  const upstream = await createFakeUpstream();
  t.after(() => upstream.close());
  const model = (id: string, input: number) => ({
    id,
    provider: 'openai',
    model_name: id,
    api_base: upstream.url,
    api_key_env: 'UP',
    pricing: { input_per_million: input, output_per_million: 0 },
  });
  const config = {
    models: [model('cheap', 1), model('dear', 10)],
    default_model: 'cheap',
    route_rules: [
      { id: 'order', match: { keywords: ['order'] }, model: 'cheap', tools: ['order.query'] },
      { id: 'rest', match: '.*', model: 'cheap' },
    ],
    trace: { capture_content: true },
  };
  const running = await startApp(config, { env: { UP: 'sk-up' } });
  t.after(() => running.stop());
  writeFileSync(
    join(running.folder, 'next.yaml'),
    JSON.stringify([
      { id: 'order', match: { keywords: ['order', 'parcel'] }, model: 'dear' },
      { id: 'rest', match: '.*', model: 'cheap' },
    ]),
  );
  // Begun by a reload: the step that watches was off until then.
  const { plugins_dir } = running.app.config().pipeline;
  writeFileSync(
    join(running.folder, 'hermes.yaml'),
    JSON.stringify({ ...config, pipeline: { plugins_dir }, rollout: { rules_file: 'next.yaml', percent: 50 } }),
  );
  assert.equal((await running.app.reload()).outcome, 'ok');
  const arms = { live: 0, candidate: 0 };
  for (let index = 0; index < 16; index++) {
    const reply = await running.chat({ messages: user(index % 2 ? 'my parcel' : 'hello'), session_id: `s${index >> 1}`, stream: index % 3 === 0 });
    assert.equal(reply.status, 200, reply.text);
    if (index % 2) arms[reply.headers.get('x-hermes-model') === 'dear' ? 'candidate' : 'live']++;
  }
  assert.ok(arms.live > 0 && arms.candidate > 0);
  let report: RolloutReport | undefined;
  for (let tries = 0; tries < 50 && report?.comparisons !== 16; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    const { json } = await running.fetch('/admin/shadow/report', { headers: { authorization: `Bearer ${KEY}` } });
    const whole = json as object as ShadowReport;
    assert.equal(whole.comparisons, 0, 'they are no shadow');
    report = whole.rollout;
  }
  const parcel = report?.routes.find(({ live_model, candidate_model }) => live_model !== candidate_model);
  assert.deepEqual([parcel?.live_route, parcel?.candidate_route, parcel?.live_model, parcel?.candidate_model], ['rest', 'order', 'cheap', 'dear']);
  assert.deepEqual([parcel?.live.served, parcel?.candidate.served], [arms.live, arms.candidate]);
  assert.deepEqual([report?.same_route, parcel?.live.failed, parcel?.candidate.failed], [8, 0, 0]);
  assert.ok((parcel?.candidate.cost_nano_usd ?? 0) > 9 * (parcel?.live.cost_nano_usd ?? 0), JSON.stringify(parcel));
  assert.match(parcel?.verdict ?? '', /another rule, dear instead of cheap, too few requests to compare/);
  assert.deepEqual(new Set(report?.examples.map(({ text, arm }) => `${text} ${arm}`)), new Set(['my parcel live', 'my parcel candidate']));
});

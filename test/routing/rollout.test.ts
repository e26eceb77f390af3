import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, test } from 'node:test';
import { armOf } from '../../src/routing/rollout.ts';
import { KEY, startApp, user } from '../app-kit.ts';
import { type Asking, asking, routing, rule } from './fixture.ts';

const live = [rule('order', { keywords: ['order'] }), rule('rest', '.*', { model: 'm_z' })];
const next = [rule('order_next', { keywords: ['order', 'parcel'] }, { model: 'm_b', tools: ['order.query'] }), rule('rest_next', '.*', { model: 'm_z' })];
const rollout = (percent: number, by: 'session' | 'user' | 'key' = 'session') => ({ rollout: { rules_file: '/next.yaml', rules: next, percent, by } });
const inSession = (sessionId: string, more: Asking = {}): Asking => ({ messages: [{ role: 'user', content: 'my order' }], ask: { sessionId }, ...more });
const sessions = Array.from({ length: 10_000 }, (_, index) => `session-${index}`);
const candidates = (percent: number) => new Set(sessions.filter((id) => armOf({ percent, by: 'session' }, asking(inSession(id))) === 'candidate'));

describe('a rollout', () => {
  it('takes about its percentage of the sessions, and a greater one keeps those of a smaller', () => {
    const [few, more] = [candidates(5), candidates(30)];
    assert.ok(Math.abs(few.size - 500) < 100 && Math.abs(more.size - 3_000) < 250, `${few.size} and ${more.size}`);
    assert.ok([...few].every((id) => more.has(id)));
    assert.deepEqual([candidates(0).size, candidates(100).size], [0, 10_000]);
  });

  it('decides by the candidate rules for real, and a session never changes sides', async () => {
    const first = routing(live, rollout(50));
    const restarted = routing(live, rollout(50));
    const seen = new Set<string>();
    for (const id of sessions.slice(0, 60)) {
      const decisions = [];
      for (const bench of [first, first, restarted]) decisions.push(await bench.engine.decide(asking(inSession(id))));
      assert.deepEqual(decisions[1], decisions[0]);
      assert.deepEqual(decisions[2], decisions[0]);
      const [{ rule: route, model, tools, arm }] = decisions as [(typeof decisions)[number]];
      seen.add(route);
      assert.deepEqual([model, tools, arm], route === 'order_next' ? ['m_b', ['order.query'], 'candidate'] : ['m_a', [], 'live']);
    }
    assert.deepEqual([...seen].sort(), ['order', 'order_next']);
    const count = (arm: string) => first.seen.counts.get(`hermes_rollout_total ${arm}`) ?? 0;
    assert.equal(count('live') + count('candidate'), 120);
    assert.equal(count('candidate'), first.seen.counts.get('hermes_route_hits_total order_next'));
  });

  it('is explained as it decides', async () => {
    const { engine } = routing(live, rollout(50));
    for (const id of sessions.slice(0, 30)) {
      const decision = await engine.decide(asking(inSession(id)));
      const explained = await engine.explain(asking(inSession(id)));
      assert.deepEqual(explained.decision, decision);
      assert.equal(/by the candidate rules of the rollout/.test(explained.why), decision.arm === 'candidate');
    }
  });

  it('goes by project and session, by user or by key; a request without one by its text', () => {
    const arms = (by: 'session' | 'user' | 'key', given: (index: number) => Asking) =>
      new Set(Array.from({ length: 40 }, (_, index) => armOf({ percent: 50, by }, asking(given(index)))));
    const caller = (user: string, project = 'shop') => ({ caller: { user, project } });
    assert.equal(arms('user', (index) => inSession(`s${index}`, caller('u'))).size, 1);
    assert.equal(arms('user', (index) => inSession('s', caller(`u${index}`))).size, 2);
    assert.equal(arms('session', (index) => inSession('s', caller(`u${index}`))).size, 1);
    assert.equal(arms('session', (index) => inSession('s', caller('u', `p${index}`))).size, 2, "another project's session of that name is another");
    assert.equal(arms('key', (index) => inSession(`s${index}`)).size, 1);
    assert.equal(arms('key', (index) => ({ ...inSession('s'), principal: { id: `k${index}` } })).size, 2);
    const said = (content: string): Asking => ({ messages: [{ role: 'user', content }] });
    assert.equal(arms('session', (index) => said(`question ${index}`)).size, 2);
    const question = said('where is it');
    const rounds = [...(question.messages ?? []), { role: 'assistant' as const, content: null }, { role: 'tool' as const, tool_call_id: 't', content: '{}' }];
    assert.equal(armOf({ percent: 50, by: 'session' }, asking({ messages: rounds })), armOf({ percent: 50, by: 'session' }, asking(question)));
  });

  it('leaves a model that the caller names alone', async () => {
    const bench = routing(live, rollout(100));
    const decision = await bench.engine.decide(asking({ ...inSession('s'), request: { model: 'm_a' } }));
    assert.deepEqual([decision.rule, decision.arm, bench.seen.counts.has('hermes_rollout_total candidate')], ['none', undefined, false]);
  });
});

test('a rollout is taken up, widened and ended by reloads, and seen in headers, metrics and /admin/routes', async (t) => {
  const models = [
    { id: 'fast', provider: 'simulator' },
    { id: 'smart', provider: 'simulator' },
  ];
  const rules = [{ id: 'rest', match: '.*', model: 'fast' }];
  const running = await startApp({ models, default_model: 'fast', route_rules: rules });
  t.after(() => running.stop());
  const { plugins_dir } = running.app.config().pipeline;
  writeFileSync(join(running.folder, 'next.yaml'), JSON.stringify([{ id: 'rest_next', match: '.*', model: 'smart' }]));
  const routes = async () =>
    Promise.all(
      Array.from({ length: 12 }, async (_, index) => {
        const reply = await running.chat({ messages: user('hello'), session_id: `s${index}` });
        assert.equal(reply.status, 200, reply.text);
        return `${reply.headers.get('x-hermes-route')} ${reply.headers.get('x-hermes-model')}`;
      }),
    );
  const turnTo = async (percent: number | undefined) => {
    const config = {
      models,
      default_model: 'fast',
      route_rules: rules,
      pipeline: { plugins_dir },
      ...(percent !== undefined && { rollout: { rules_file: 'next.yaml', percent } }),
    };
    writeFileSync(join(running.folder, 'hermes.yaml'), JSON.stringify(config));
    assert.equal((await running.app.reload()).outcome, 'ok');
    return routes();
  };
  assert.deepEqual(new Set(await routes()), new Set(['rest fast']));
  const half = await turnTo(50);
  assert.deepEqual(new Set(half), new Set(['rest fast', 'rest_next smart']));
  assert.deepEqual(await turnTo(50), half);
  const { statistics } = (await running.fetch('/admin/routes')).json as {
    statistics: { rollout: { live: number; candidate: number }; rules: { rule: string; hits: number }[] };
  };
  const moved = half.filter((route) => route === 'rest_next smart').length;
  assert.deepEqual(statistics.rollout, { percent: 50, by: 'session', live: 2 * (12 - moved), candidate: 2 * moved });
  assert.equal(statistics.rules.find(({ rule: id }) => id === 'rest_next')?.hits, 2 * moved);
  const debugged = await running.post('/debug/route', { message: 'hello', session_id: `s${half.indexOf('rest_next smart')}` });
  assert.deepEqual([debugged.json.rule, debugged.json.model], ['rest_next', 'smart']);
  const metrics = (await running.fetch('/metrics', { headers: { authorization: `Bearer ${KEY}` } })).text;
  assert.match(metrics, new RegExp(`hermes_rollout_total\\{arm="candidate"\\} ${2 * moved}`));
  assert.match(metrics, /hermes_route_default_share 1/);
  assert.match(metrics, new RegExp(`hermes_requests_total\\{route="rest_next",model="smart",[^}]*\\} ${2 * moved}`));
  assert.deepEqual(new Set(await turnTo(100)), new Set(['rest_next smart']));
  assert.deepEqual(new Set(await turnTo(undefined)), new Set(['rest fast']));
});

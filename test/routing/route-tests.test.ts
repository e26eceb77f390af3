import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { parseRouteTests, runRouteTests, untestedRules } from '../../src/routing/route-tests.ts';
import { routing, rule } from './fixture.ts';

const bench = routing([rule('order', { keywords: ['订单'] }), rule('vip', { user_level: 'vip' }), rule('kb', { service_type: 'kb' }), rule('rest', '.*')]);

describe('route tests', () => {
  it('print hits and confusions', async () => {
    const tests = parseRouteTests(`
- { rule: order, questions: [我的订单, 包裹呢, 快递呢] }
- { rule: vip, questions: [你好], fields: { user_level: vip } }
- { rule: kb, questions: [你好], fields: { service_type: kb } }
- { rule: order, questions: [订单, 你好], fields: { user_level: vip, priority: urgent } }
`);
    const report = await runRouteTests(tests, bench.engine);
    assert.deepEqual([report.total, report.passed], [7, 4]);
    assert.deepEqual(report.rules, [
      { rule: 'order', questions: 5, hit: 2 },
      { rule: 'vip', questions: 1, hit: 1 },
      { rule: 'kb', questions: 1, hit: 1 },
    ]);
    assert.deepEqual(report.confusions, [
      { want: 'order', got: 'rest', count: 2 },
      { want: 'order', got: 'vip', count: 1 },
    ]);
    assert.deepEqual(report.failures[0], { question: '包裹呢', want: 'order', got: 'rest', why: '.* hits every text' });
    assert.deepEqual(untestedRules(bench.config, tests), ['rest']);
  });

  for (const [text, message] of [
    ['rule: x', /must be a list/],
    ['- 7', /entry 1 needs a rule/],
    ['- { rule: a }', /entry 1 \(a\) needs questions/],
    ['- { rule: a, questions: [] }', /needs questions/],
    ['- { rule: a, questions: [x], fields: { level: vip } }', /no field level/],
    ['- { rule: a, questions: [x], fields: { priority: now } }', /urgent, normal or batch/],
    ['- [', /not YAML/],
  ] satisfies [string, RegExp][]) {
    it(`refuse ${JSON.stringify(text)}`, () => assert.throws(() => parseRouteTests(text), message));
  }

  it('that come with hermes have at least ten questions a rule, in Chinese and English', () => {
    const tests = parseRouteTests(readFileSync(new URL('../../config/route_tests.yaml', import.meta.url), 'utf8'));
    const counts = new Map<string, number>();
    for (const { rule: id, questions } of tests) counts.set(id, (counts.get(id) ?? 0) + questions.length);
    for (const [id, count] of counts) assert.ok(count >= 10, `${id}: ${count}`);
    assert.deepEqual([...counts.keys()].sort(), ['default', 'order_query', 'order_query_semantic', 'refund_apply', 'vip']);
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type DebugRoute, debugRoute } from '../../src/admin/debug-route.ts';
import { dryRunOf } from '../../src/app/dry-run.ts';
import { createHouse, type House } from '../../src/app/house.ts';
import { createConfigReader } from '../../src/app/read-config.ts';
import { parseRunTimeKey } from '../../src/config/run-time-key.ts';
import type { HermesError } from '../../src/contracts/errors.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';

const key = (id: string, more: object = {}) => ({ id, sha256: '0'.repeat(62) + id.length.toString(16).padStart(2, '0'), service: id, ...more });
const file = {
  auth: { keys: [key('admin', { admin: true, services: ['*'] }), key('support', { models: ['fast', 'pool'], tools: ['order.*'], user_levels: ['vip'] })] },
  models: [
    { id: 'fast', provider: 'simulator', model_name: 'fast-1', tier: 'low', context_window: 4000, max_tokens: 100 },
    { id: 'big', provider: 'simulator', model_name: 'big-1', tier: 'high', context_window: 100_000, max_tokens: 100 },
    {
      id: 'pool',
      failover: {
        strategy: 'priority',
        upstreams: [
          { target: 'fast', weight: 3 },
          { target: 'big', weight: 1 },
        ],
      },
    },
  ],
  default_model: 'fast',
  session: { storage: { hot_backend: 'memory', cold_backend: 'sqlite' }, max_context_tokens: 300, reserve_tokens: 10 },
  tools: ['order.query', 'refund.apply'].map((id) => ({
    id,
    endpoint: 'http://127.0.0.1:9/x',
    parameters: { type: 'object', properties: {} },
    side_effects: false,
  })),
  cost: { timezone: 'UTC', schedule: [{ id: 'always', hours: '00:00-24:00', routes: ['big'], except_priority: ['urgent'], model: 'fast' }] },
  route_rules: [
    { id: 'order', match: { keywords: ['订单', 'order'] }, model: 'pool', tools: ['order.query', 'refund.apply'] },
    { id: 'vip', match: { user_level: 'vip', keywords: ['hello'] }, model: 'big' },
    { id: 'big', match: { keywords: ['big'] }, model: 'big', priority: 'batch' },
    { id: 'rest', match: '.*', model: 'default_model' },
  ],
};

let house: House;
before(async () => {
  const { registries, read } = await createConfigReader({ file: '/nowhere/hermes.yaml', text: JSON.stringify(file), env: { DATABASE_URL: 'sqlite::memory:' } });
  house = await createHouse({ loaded: read(), log: createLog('error', process.stderr), metrics: createMetrics() }, registries);
});
after(() => house.close());

const dry = async (body: unknown, as = 'admin'): Promise<DebugRoute> => {
  const deps = dryRunOf(house);
  const { config } = house.generation();
  return debugRoute(deps, { config, headers: {}, principal: await deps.principalOf(config, as) }, body);
};

describe('POST /debug/route', () => {
  it('knows the keys that were added at run time, until they are revoked', async () => {
    await house.keys.add(parseRunTimeKey({ id: 'late', models: ['fast'] }), 'test');
    assert.equal((await dry({ message: 'x', model: 'fast', as_key: 'late' })).model, 'fast');
    await assert.rejects(dry({ message: 'x', model: 'big', as_key: 'late' }), /may not use/);
    await house.keys.revoke('late');
    await assert.rejects(dry({ message: 'x', as_key: 'late' }), /no key/);
  });

  it('says the rule, why, and why not the earlier ones', async () => {
    const told = await dry({ message: 'a big one', user_level: 'basic' });
    assert.deepEqual([told.rule, told.why], ['big', 'keyword big']);
    assert.deepEqual(
      told.earlier.map(({ rule }) => rule),
      ['order', 'vip'],
    );
    assert.match(told.earlier[1]?.why ?? '', /user_level is basic, not vip/);
  });

  it('says the model before and after the hour, and the priority of the rule', async () => {
    const told = await dry({ message: 'a big one' });
    assert.deepEqual([told.model_before_cost, told.model, told.cost_rule, told.priority], ['big', 'fast', 'always', 'batch']);
    const urgent = await dry({ message: 'a big one', priority: 'urgent' });
    assert.deepEqual([urgent.model, urgent.cost_rule, urgent.priority], ['big', null, 'urgent']);
  });

  it('shows each upstream with weight and state, and the one that would be picked', async () => {
    const { upstreams } = await dry({ message: '我的订单' });
    assert.deepEqual(upstreams, [
      { upstream: 'fast', weight: 3, state: 'closed', picked: true },
      { upstream: 'big', weight: 1, state: 'closed', picked: false },
    ]);
  });

  it('shows the tools by the rights of the key that it is asked for', async () => {
    const whole = await dry({ message: 'my order', tools: ['order.query', 'refund.apply', 'nothing'] });
    assert.deepEqual([whole.tools, whole.unavailable_tools], [['order.query', 'refund.apply'], ['nothing']]);
    const support = await dry({ message: 'my order', tools: ['order.query', 'refund.apply'], as_key: 'support' });
    assert.deepEqual([support.tools, support.unavailable_tools], [['order.query'], ['refund.apply']]);
  });

  it('counts the request, takes a chat body, and counts what would be sent', async () => {
    const messages = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'where is my order' },
    ];
    const told = await dry({ messages, model: 'auto', temperature: 0.3 });
    assert.equal(told.rule, 'order');
    assert.equal(told.request.messages, 2);
    assert.ok(told.request.tokens > 5);
    assert.deepEqual(told.session, { messages: 0, tokens: 0 });
  });

  it('puts the stored history before it and says what trimming would drop', async () => {
    const long = 'word '.repeat(100);
    const stored = (role: 'user' | 'assistant', content: string) => ({ message: { role, content }, tokens: 100 });
    const turn = { project: 'admin', session: 's1', at: 1, requestId: 'r', system: [], model: 'fast' };
    for (const [version, word] of ['one', 'two', 'three'].entries()) {
      await house.cold.appendTurn({
        ...turn,
        requestId: `r${version}`,
        baseVersion: version,
        messages: [stored('user', `${word} ${long}`), stored('assistant', long)],
      });
    }
    const told = await dry({ message: 'my order?', session_id: 's1' });
    assert.equal(told.session.messages, 6);
    assert.ok('dropped' in told.trim && told.trim.dropped > 0 && told.trim.kept > 0 && told.trim.budget === 300, JSON.stringify(told.trim));
    assert.equal((await house.cold.readSession('admin', 's1', 100))?.total, 6, 'nothing is stored');
    assert.equal(
      (await dry({ message: 'my order?', session_id: 's1', as_key: 'support' })).session.messages,
      0,
      "another project's session is another session",
    );
  });

  it('says that the rules are skipped when the model is named', async () => {
    const told = await dry({ message: '订单', prefer_model: 'big' });
    assert.deepEqual([told.rule, told.model, told.cost_rule, told.earlier], ['none', 'big', null, []]);
    assert.match(told.why, /prefer_model names big/);
  });

  const refusals: [string, object, number, RegExp][] = [
    ['an unknown model', { message: 'x', model: 'gpt-99' }, 404, /Available: auto, fast, big, pool/],
    ['a model that the key may not use', { message: 'x', model: 'big', as_key: 'support' }, 403, /may not use/],
    ['a user_level that the key may not assert', { message: 'x', user_level: 'gold', as_key: 'support' }, 403, /gold/],
    ['an unknown key', { message: 'x', as_key: 'nobody' }, 404, /Known: admin, support/],
    ['a message that is none', { message: 7 }, 400, /message is text/],
    ['nothing to decide about', {}, 400, /messages/],
  ];
  for (const [what, body, status, message] of refusals) {
    it(`answers ${what} as the request itself would be`, () =>
      assert.rejects(dry(body), (error: HermesError) => {
        assert.equal(error.status, status, error.message);
        assert.match(error.message, message);
        return true;
      }));
  }
});

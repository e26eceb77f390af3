import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ServeDeps } from '../../src/accounting/can-serve.ts';
import { createScheduleRoom } from '../../src/accounting/schedule-room.ts';
import { isDearer, typicalPrice } from '../../src/accounting/typical-price.ts';
import type { Config, ModelEntry } from '../../src/contracts/config.ts';
import type { Exchange, RouteDecision } from '../../src/contracts/exchange.ts';
import { missingAbility } from '../../src/upstream/capabilities.ts';
import { estimateInputTokens } from '../../src/upstream/estimate.ts';
import type { ChatRequest } from '../../src/wire/chat.ts';
import { allows } from '../../src/wire/patterns.ts';
import { makeConfig } from '../config/make-config.ts';
import { makeClock } from './accounting-kit.ts';

const price = (input: number, output = input) => ({ input_per_million: input, output_per_million: output });
const models = [
  { id: 'fast_model', provider: 'simulator', tier: 'low', pricing: price(1) },
  { id: 'mid_model', provider: 'simulator', tier: 'mid', pricing: price(4) },
  { id: 'smart_model', provider: 'simulator', tier: 'high', pricing: price(10), supports: { vision: true } },
  { id: 'blind', provider: 'simulator', tier: 'low', pricing: price(0.5), supports: { vision: false, tools: false, json_schema: false }, context_window: 100 },
  { id: 'keyless', provider: 'openai', tier: 'low', pricing: price(0.1) },
  { id: 'unpriced', provider: 'simulator' },
];
const schedule = [
  { id: 'night', hours: '02:00-08:00', except_priority: ['urgent'], model: 'fast_model' },
  { id: 'peak', days: 'mon-fri', hours: '09:00-22:00', except_routes: ['refund_apply'], services: ['support', 'kb'], tiers: ['high'], model: 'fast_model' },
  { id: 'late', hours: '22:00-02:00', routes: ['default'], model: 'mid_model' },
];
const configOf = (cost: object): Config => makeConfig({ models, cost: { timezone: 'Asia/Shanghai', ...cost } });
const decision = (over: Partial<RouteDecision> = {}): RouteDecision => ({ rule: 'default', model: 'smart_model', tools: undefined, explicit: false, ...over });
const request: ChatRequest = { model: 'auto', messages: [{ role: 'user', content: 'hello' }] };

interface Asked {
  at: string;
  config: Config;
  crossed?: string[];
  decision?: Partial<RouteDecision>;
  request?: Partial<ChatRequest>;
  service?: string;
  priority?: 'urgent' | 'normal' | 'batch';
  allowed?: string[];
  offersTools?: boolean;
  session?: boolean;
}
function apply({ at, config, crossed = [], ...asked }: Asked): RouteDecision {
  const deps: ServeDeps = { allows, missingAbility, offersTools: () => asked.offersTools ?? false, estimateTokens: estimateInputTokens };
  const room = createScheduleRoom({
    ...deps,
    crossedFor: (_service, { cost }) => cost.budgets.filter(({ id }) => crossed.includes(id)),
    environment: makeClock(at),
  });
  const exchange: Pick<Exchange, 'config' | 'request' | 'principal' | 'caller' | 'session'> = {
    config,
    request: { ...request, ...asked.request },
    principal: {
      id: 'k',
      service: 's',
      services: [],
      project: 'p',
      projects: [],
      admin: false,
      models: asked.allowed ?? ['*'],
      tools: [],
      userLevels: [],
      priorities: [],
      passthrough: [],
    },
    caller: { service: asked.service ?? 'support', project: 'p', user: undefined, userLevel: undefined, priority: asked.priority ?? 'normal' },
    session: asked.session ? { id: 's', project: 'p', historyMessages: 0, historyTokens: 0 } : undefined,
  };
  // The room looks at no more of an exchange than this.
  const made = room.apply(exchange as Exchange, decision(asked.decision));
  assert.ok(!(made instanceof Promise));
  return made;
}
const MONDAY = '2026-11-30';

describe('the schedule', () => {
  const config = configOf({ schedule });
  const model = (over: Partial<Asked>): string => apply({ at: `${MONDAY}T12:00:00+08:00`, config, ...over }).model;

  it('takes the first entry that fits the hour, and says which', () => {
    assert.deepEqual(apply({ at: `${MONDAY}T03:00:00+08:00`, config }), {
      ...decision(),
      model: 'fast_model',
      costRule: 'night',
      modelBeforeCost: 'smart_model',
    });
    assert.equal(apply({ at: `${MONDAY}T12:00:00+08:00`, config }).costRule, 'peak');
    const same = decision();
    assert.equal(apply({ at: `${MONDAY}T08:30:00+08:00`, config, decision: same }).costRule, undefined);
  });
  it('leaves alone what it excepts, other services, other tiers, and an explicit model', () => {
    assert.equal(model({ at: `${MONDAY}T03:00:00+08:00`, priority: 'urgent' }), 'smart_model');
    assert.equal(model({ at: `${MONDAY}T03:00:00+08:00`, decision: { priority: 'urgent' } }), 'smart_model', "a rule's priority counts");
    assert.equal(model({ decision: { rule: 'refund_apply' } }), 'smart_model');
    assert.equal(model({ service: 'lab' }), 'smart_model');
    assert.equal(model({ decision: { model: 'mid_model' } }), 'mid_model');
    assert.equal(model({ decision: { explicit: true, rule: 'none' } }), 'smart_model');
    assert.equal(model({ at: `${MONDAY}T23:00:00+08:00`, decision: { rule: 'vip' } }), 'smart_model', 'only the rules that it names');
    assert.equal(model({ at: `${MONDAY}T23:00:00+08:00` }), 'mid_model');
  });
  it('never takes a model that the key may not use', () => {
    assert.equal(model({ allowed: ['smart_*'] }), 'smart_model');
    assert.equal(model({ allowed: ['smart_*', 'fast_model'] }), 'fast_model');
  });
  it('never takes a model that cannot serve the request', () => {
    const blind = configOf({ schedule: [{ id: 'all', hours: '00:00-24:00', model: 'blind' }] });
    const asked = (over: Partial<Asked>): string => model({ config: blind, ...over });
    assert.equal(asked({}), 'blind');
    const image = [{ role: 'user' as const, content: [{ type: 'image_url' as const, image_url: { url: 'https://x.test/a.png' } }] }];
    assert.equal(asked({ request: { messages: image } }), 'smart_model');
    assert.equal(asked({ request: { tools: [{ type: 'function', function: { name: 'f', parameters: {} } }] } }), 'smart_model');
    assert.equal(asked({ request: { response_format: { type: 'json_schema', json_schema: {} } } }), 'smart_model');
    assert.equal(asked({ offersTools: true }), 'smart_model', 'tools of ours');
    const long = { messages: [{ role: 'user' as const, content: 'long '.repeat(200) }] };
    assert.equal(asked({ request: long }), 'smart_model', 'its window is too small');
    assert.equal(asked({ request: long, session: true }), 'blind', 'a session is cut to fit');
    assert.equal(model({ config: configOf({ schedule: [{ id: 'all', hours: '00:00-24:00', model: 'keyless' }] }) }), 'smart_model', 'hermes has no key for it');
  });
});

describe('a crossed budget', () => {
  const budget = (id: string, switch_to: string) => ({ id, service: 'support', usd_per_day: 1, switch_to });
  const config = configOf({ schedule, budgets: [budget('b', 'mid_model'), budget('blindly', 'blind'), budget('up', 'smart_model')] });
  const asked = (over: Partial<Asked>): RouteDecision => apply({ at: `${MONDAY}T08:30:00+08:00`, config, ...over });

  it('switches to its model, an explicit one too', () => {
    assert.deepEqual(asked({ crossed: ['b'] }), { ...decision(), model: 'mid_model', costRule: 'b', modelBeforeCost: 'smart_model' });
    assert.equal(asked({ crossed: ['b'], decision: { explicit: true, rule: 'none' } }).model, 'mid_model');
    assert.equal(asked({}).model, 'smart_model', 'one that is not crossed does nothing');
  });
  it('comes after the schedule, and never goes to something dearer', () => {
    const night = asked({ at: `${MONDAY}T03:00:00+08:00`, crossed: ['b', 'up'] });
    assert.deepEqual([night.model, night.costRule, night.modelBeforeCost], ['fast_model', 'night', 'smart_model']);
    assert.equal(asked({ crossed: ['b'], decision: { model: 'mid_model' } }).costRule, undefined);
  });
  it('never goes to a model that the key may not use, or that cannot serve', () => {
    assert.equal(asked({ crossed: ['b'], allowed: ['smart_model'] }).model, 'smart_model');
    const tools = { tools: [{ type: 'function' as const, function: { name: 'f', parameters: {} } }] };
    assert.equal(asked({ crossed: ['blindly'], request: tools }).model, 'smart_model');
    assert.equal(asked({ crossed: ['b', 'blindly'] }).model, 'blind', 'the cheapest that the crossed ones name');
    assert.equal(asked({ crossed: ['b', 'blindly'], request: tools }).model, 'mid_model');
  });
});

describe('which model is dearer', () => {
  const config = makeConfig({
    models: [
      ...models,
      { id: 'low_unpriced', provider: 'simulator', tier: 'low' },
      { id: 'high_unpriced', provider: 'simulator', tier: 'high' },
      { id: 'free', provider: 'simulator', pricing: price(0) },
      { id: 'by_request', provider: 'simulator', pricing: { ...price(1), per_request: 50 } },
      {
        id: 'pool',
        failover: {
          upstreams: [
            { target: 'fast_model', weight: 3 },
            { target: 'smart_model', weight: 1 },
          ],
        },
      },
      { id: 'half_known', failover: { upstreams: [{ target: 'fast_model' }, { target: 'unpriced' }] } },
      { id: 'nightly', provider: 'simulator', pricing: { ...price(3), bands: [{ hours: '00:00-06:00', timezone: 'UTC', multiply: 2 }] } },
    ],
  });
  const noon = Date.parse('2026-11-30T12:00:00Z');
  const entry = (id: string): ModelEntry => config.registry.models.get(id) ?? assert.fail(id);
  const dearer = (a: string, b: string, at = noon): boolean => isDearer(config, entry(a), entry(b), at);

  it('is told by price, by request too, at this hour', () => {
    assert.ok(dearer('smart_model', 'mid_model') && !dearer('mid_model', 'smart_model') && !dearer('fast_model', 'fast_model'));
    assert.ok(dearer('by_request', 'smart_model'));
    assert.ok(!dearer('nightly', 'mid_model') && dearer('nightly', 'mid_model', Date.parse('2026-11-30T03:00:00Z')));
  });
  it('takes the mean of a model with several upstreams, by weight', () => {
    assert.equal(typicalPrice(config, entry('pool'), noon), ((3 * 4 + 40) / 4) * 1e9);
    assert.ok(dearer('smart_model', 'pool') && dearer('pool', 'fast_model'));
    assert.equal(typicalPrice(config, entry('half_known'), noon), undefined);
  });
  it('falls back on tiers where a price is missing', () => {
    assert.ok(dearer('high_unpriced', 'mid_model') && !dearer('low_unpriced', 'mid_model') && !dearer('fast_model', 'high_unpriced'));
  });
  it('takes a known price for dearer than an unknown one, never the other way round', () => {
    assert.ok(dearer('by_request', 'unpriced') && !dearer('unpriced', 'by_request') && !dearer('free', 'unpriced'));
  });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { loadConfig } from '../../src/config/load.ts';
import { makeConfig } from './make-config.ts';

const KEYS = { OPENAI_API_KEY: 'sk-openai-0123456789abcdef', ANTHROPIC_API_KEY: 'sk-ant-0123456789abcdef', OTHER_KEY: 'sk-other-0123456789abcdef' };
const fast = {
  id: 'fast',
  provider: 'openai',
  model_name: 'gpt-4o-mini',
  max_tokens: 1024,
  timeout_ms: 15_000,
  pricing: { input_per_million: 0.15, output_per_million: 0.6 },
};
const targets = (file: Record<string, unknown>, id: string) => makeConfig(file, KEYS).registry.models.get(id)?.upstreams ?? [];
const only = (file: Record<string, unknown>, id: string) => {
  const [target, ...more] = targets(file, id);
  assert.ok(target && more.length === 0);
  return target;
};

test('a plain model has one upstream, with its own settings and failover defaults', () => {
  const config = makeConfig(
    { models: [{ ...fast, context_window: 128_000, supports: { vision: false }, headers: { 'x-a': 1 }, extra_body: { top_k: null } }] },
    KEYS,
  );
  const model = config.registry.models.get('fast');
  assert.deepEqual(model?.failover, {
    strategy: 'weighted_round_robin',
    failure_threshold: 5,
    cooldown_ms: 30_000,
    max_attempts: 3,
    max_retry_after_ms: 5000,
    affinity: 'none',
    hedge_ms: 0,
    commit: 'content',
    written: [],
  });
  const target = model?.upstreams[0];
  assert.deepEqual(
    { ...target, identity: undefined },
    {
      id: 'fast',
      identity: undefined,
      provider: 'openai',
      modelName: 'gpt-4o-mini',
      apiBase: 'https://api.openai.com/v1',
      apiKeyEnv: 'OPENAI_API_KEY',
      apiVersion: undefined,
      headers: { 'x-a': '1' },
      query: {},
      extraBody: { top_k: null },
      maxTokens: 1024,
      contextWindow: 128_000,
      timeoutMs: 15_000,
      firstTokenTimeoutMs: 15_000,
      supports: { vision: false, tools: true, json_schema: true },
      reasoning: undefined,
      pricedAs: 'fast',
      weight: 1,
      quirks: {},
    },
  );
  assert.equal(target?.apiKey, KEYS.OPENAI_API_KEY);
});

test('a model id that stands twice is one model, and later keys win', () => {
  const config = makeConfig({
    models: [
      { id: 'a', provider: 'simulator', max_tokens: 1, tier: 'low', failover: { max_attempts: 9, cooldown_ms: 1 } },
      { id: 'b', provider: 'simulator' },
      { id: 'a', max_tokens: 2, failover: { cooldown_ms: 5, fallback_target: 'b' } },
    ],
  });
  const a = config.registry.models.get('a');
  assert.deepEqual([...config.registry.models.keys()], ['a', 'b']);
  assert.deepEqual([a?.maxTokens, a?.tier, a?.failover.max_attempts, a?.failover.cooldown_ms, a?.failover.fallback_target], [2, 'low', 9, 5, 'b']);
});

test('a provider target without a model name takes the model’s own when it is of that provider', () => {
  const target = only(
    { models: [{ id: 'a', provider: 'anthropic', model_name: 'claude-x', max_tokens: 7, failover: { upstreams: [{ target: 'anthropic' }] } }] },
    'a',
  );
  assert.deepEqual([target.id, target.modelName, target.pricedAs, target.maxTokens], ['anthropic/claude-x', 'claude-x', 'a', 7]);
});

test('else it takes the first registered model of that provider with that model’s block, and says so', () => {
  const text = JSON.stringify({
    models: [
      { ...fast, context_window: 99, supports: { tools: false }, api_base: 'https://proxy.example/v1', api_key_env: 'OTHER_KEY' },
      { id: 'b', provider: 'anthropic', max_tokens: 2048, timeout_ms: 30_000, failover: { upstreams: [{ target: 'openai', weight: 70 }] } },
    ],
  });
  const { config, warnings } = loadConfig({ file: '/x.yaml', text, env: KEYS });
  const target = config.registry.models.get('b')?.upstreams[0];
  assert.deepEqual(
    [target?.id, target?.modelName, target?.apiBase, target?.apiKey, target?.contextWindow, target?.supports.tools, target?.pricedAs],
    ['openai/gpt-4o-mini', 'gpt-4o-mini', 'https://proxy.example/v1', KEYS.OTHER_KEY, 99, false, 'fast'],
  );
  assert.deepEqual([target?.maxTokens, target?.timeoutMs, target?.weight], [2048, 30_000, 70], 'time-outs and max_tokens are the listing model’s');
  assert.equal(target?.identity, config.registry.models.get('fast')?.upstreams[0]?.identity, 'one upstream, one breaker');
  assert.ok(warnings.some((warning) => warning.includes('takes `gpt-4o-mini`')));
});

test('a model target brings its block; only time-outs and max_tokens fall back to the model that lists it', () => {
  const target = only(
    {
      models: [
        { id: 'a', provider: 'openai', api_base: 'http://127.0.0.1:9/v1/', api_key_env: 'OTHER_KEY', context_window: 5, first_token_timeout_ms: 3 },
        { id: 'b', max_tokens: 11, context_window: 1000, timeout_ms: 22, api_version: 'x', headers: { a: 'b' }, failover: { upstreams: [{ target: 'a' }] } },
      ],
    },
    'b',
  );
  assert.deepEqual(
    [
      target.id,
      target.apiBase,
      target.contextWindow,
      target.maxTokens,
      target.timeoutMs,
      target.firstTokenTimeoutMs,
      target.apiVersion,
      target.headers,
      target.pricedAs,
    ],
    ['a', 'http://127.0.0.1:9/v1', 5, 11, 22, 3, undefined, {}, 'a'],
  );
});

test('an entry’s own fields win over its target, its prices too', () => {
  const target = only(
    {
      models: [
        fast,
        {
          id: 'b',
          failover: {
            upstreams: [{ target: 'fast', model_name: 'gpt-x', max_tokens: 5, timeout_ms: 6, pricing: { input_per_million: 9, output_per_million: 9 } }],
          },
        },
      ],
    },
    'b',
  );
  assert.deepEqual([target.id, target.modelName, target.maxTokens, target.timeoutMs, target.pricing?.[0]?.input_per_million], ['fast/gpt-x', 'gpt-x', 5, 6, 9]);
});

test('a key never goes to an address that it was not written for', () => {
  const own = only({ models: [{ id: 'a', provider: 'openai', api_base: 'http://127.0.0.1:9/v1' }] }, 'a');
  assert.deepEqual([own.apiKeyEnv, own.apiKey], [undefined, undefined]);
  const entry = only({ models: [fast, { id: 'b', failover: { upstreams: [{ target: 'fast', api_base: 'http://127.0.0.1:9/v1' }] } }] }, 'b');
  assert.deepEqual([entry.apiBase, entry.apiKey], ['http://127.0.0.1:9/v1', undefined]);
});

test('a provider target with a name is unpriced, unless the very same upstream is registered', () => {
  const list = targets(
    {
      models: [
        fast,
        {
          id: 'b',
          failover: {
            upstreams: [
              { target: 'openai', model_name: 'gpt-4o' },
              { target: 'openai', model_name: 'gpt-4o-mini' },
            ],
          },
        },
      ],
    },
    'b',
  );
  assert.deepEqual(
    list.map((target) => target.pricedAs),
    ['openai/gpt-4o', 'fast'],
  );
});

test('named providers share address, key and settings', () => {
  const target = only(
    {
      providers: {
        qwen: { type: 'openai', api_base: 'https://qwen.example/v1', api_key_env: 'OTHER_KEY', stream_options: false, headers: { a: '1', b: '1' } },
      },
      models: [{ id: 'a', provider: 'qwen', model_name: 'qwen-max', developer_role: false, headers: { b: '2' } }],
    },
    'a',
  );
  assert.deepEqual(
    [target.provider, target.apiBase, target.apiKey, target.quirks, target.headers],
    ['openai', 'https://qwen.example/v1', KEYS.OTHER_KEY, { stream_options: false, developer_role: false }, { a: '1', b: '2' }],
  );
});

test('anthropic’s address is one, with or without /v1', () => {
  const [a, b] = ['https://api.anthropic.com/v1/', 'https://api.anthropic.com'].map((api_base) =>
    only({ models: [{ id: 'a', provider: 'anthropic', api_base }] }, 'a'),
  );
  assert.equal(a?.apiBase, 'https://api.anthropic.com');
  assert.equal(a?.identity, b?.identity);
  assert.equal(a?.apiKey, KEYS.ANTHROPIC_API_KEY);
});

test('an identity tells address, name and key apart and holds none of them', () => {
  const identity = (extra: object) => only({ models: [{ ...fast, ...extra }] }, 'fast').identity;
  const all = [{}, { model_name: 'x' }, { api_base: 'https://other.example/v1', api_key_env: 'OPENAI_API_KEY' }, { api_key_env: 'OTHER_KEY' }].map(identity);
  assert.equal(new Set(all).size, 4);
  for (const one of all) assert.match(one, /^[0-9a-f]{32}$/);
});

test('an id beats an alias, and an alias a model_name', () => {
  const { registry } = makeConfig({
    models: [
      { id: 'one', provider: 'simulator', model_name: 'two' },
      { id: 'two', provider: 'simulator', model_name: 'nickname' },
      { id: 'three', provider: 'simulator', model_name: 'vendor-name', aliases: ['nickname'] },
    ],
  });
  assert.deepEqual(
    ['two', 'nickname', 'vendor-name', 'nobody', '__proto__', 'constructor'].map((name) => registry.find(name)?.id),
    ['two', 'three', 'three', undefined, undefined, undefined],
  );
});

test('rules, schedules and fallbacks may use aliases and the reserved name; they come out as ids', () => {
  const config = makeConfig({
    models: [
      { ...fast, aliases: ['quick'] },
      { id: 'b', provider: 'simulator', failover: { fallback_target: 'quick' } },
    ],
    default_model: 'b',
    route_rules: [
      { id: 'r', match: 'x', model: 'quick' },
      { id: 'd', match: '.*', model: 'default_model' },
    ],
    cost: { schedule: [{ id: 's', hours: '1:00-2:00', model: 'default_model' }], budgets: [{ id: 'b', service: 's', usd_per_day: 1, switch_to: 'quick' }] },
  });
  assert.deepEqual(
    [
      config.route_rules[0]?.model,
      config.route_rules[1]?.model,
      config.cost.schedule[0]?.model,
      config.cost.budgets[0]?.switch_to,
      config.registry.models.get('b')?.failover.fallback_target,
    ],
    ['fast', 'default_model', 'b', 'fast', 'fast'],
  );
});

test('no secret shows in JSON, in a dump or in a spread', () => {
  const config = makeConfig({ models: [fast], passthrough: { upstream: 'openai' } }, { ...KEYS, API_KEY: 'sk-hermes-0123456789abcdef' });
  const shown = [
    JSON.stringify(config),
    inspect(config, { depth: 12 }),
    JSON.stringify([...config.registry.models.values()]),
    JSON.stringify({ ...config }),
    JSON.stringify(config.registry.upstreams.map((target) => ({ ...target }))),
  ];
  for (const text of shown) for (const secret of [...Object.values(KEYS), 'sk-hermes-0123456789abcdef']) assert.ok(!text.includes(secret));
  assert.equal(config.secrets.get('API_KEY'), 'sk-hermes-0123456789abcdef');
  assert.equal(config.passthrough.target?.apiKey, KEYS.OPENAI_API_KEY);
});

test('prices come newest first', () => {
  const price = (from?: string) => ({ input_per_million: 1, output_per_million: 1, ...(from ? { from } : {}) });
  const config = makeConfig({ models: [{ id: 'a', provider: 'simulator', pricing: [price(), price('2026-12-01'), price('2026-01-01')] }] });
  assert.deepEqual(
    config.registry.models.get('a')?.pricing.map((one) => one.from),
    ['2026-12-01', '2026-01-01', undefined],
  );
});

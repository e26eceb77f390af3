// biome-ignore-all lint/suspicious/noTemplateCurlyInString: `${NAME}` in the configuration is what is tested.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { parse } from 'yaml';
import { toJsonSchema } from '../../src/config/json-schema.ts';
import { loadConfig } from '../../src/config/load.ts';
import { toReferencePage } from '../../src/config/reference-page.ts';
import { badFiles, FOLDER } from './bad-files.ts';

const at = (path: string) => new URL(`../../${path}`, import.meta.url);
const read = (path: string) => readFileSync(at(path), 'utf8');
const schema = toJsonSchema();
const valid = new Ajv2020({ strict: false }).compile(schema);
const fits = (text: string) => assert.ok(valid(parse(text, { merge: true })), JSON.stringify(valid.errors?.slice(0, 3)));

test('config/hermes.schema.json is what the schema says now (npm run schema)', () => {
  assert.equal(read('config/hermes.schema.json'), `${JSON.stringify(schema, null, 2)}\n`);
});
test('docs/configuration.md is what the schema says now (npm run schema)', () => {
  assert.equal(read('docs/configuration.md'), toReferencePage(schema));
});
test('every field of the reference has a meaning', () => {
  for (const line of read('docs/configuration.md').split('\n')) if (line.startsWith('| `')) assert.doesNotMatch(line, /\|\s*\|$/, line);
});

test('config/hermes.yaml starts with no variable set and says what is missing', () => {
  const { config, warnings } = loadConfig({ file: at('config/hermes.yaml').pathname, env: {} });
  assert.equal(config.session.storage.hot_backend, 'memory');
  assert.deepEqual(
    config.route_rules.map((rule) => rule.id),
    ['refund_apply', 'order_query', 'order_query_semantic', 'vip', 'default'],
  );
  for (const missing of ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'general.chat'])
    assert.ok(
      warnings.some((warning) => warning.includes(missing)),
      missing,
    );
  fits(read('config/hermes.yaml'));
});
test('config/hermes.yaml with its keys has nothing to say but the placeholder tool', () => {
  const env = { OPENAI_API_KEY: 'k', ANTHROPIC_API_KEY: 'k', API_KEY: 'sk-suites-3f9c1d7e5a2b48c6', REDIS_URL: 'redis://redis:6379/0' };
  const { config, warnings } = loadConfig({ file: at('config/hermes.yaml').pathname, env });
  assert.equal(config.session.storage.hot_backend, 'redis');
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? '', /general\.chat/);
});
test('config/demo.yaml needs API_KEY alone and warns of nothing', () => {
  const { config, warnings, generatedKey } = loadConfig({
    file: at('config/demo.yaml').pathname,
    env: { API_KEY: 'sk-suites-3f9c1d7e5a2b48c6', DEMO_TOOLS_PORT: '4711' },
  });
  assert.deepEqual([warnings, generatedKey], [[], undefined]);
  assert.ok(config.registry.upstreams.every((target) => target.provider === 'simulator' && target.apiKeyEnv === undefined));
  assert.deepEqual([...config.registry.models.keys()], ['fast_model', 'smart_model', 'general']);
  assert.ok(config.tools.every((tool) => 'endpoint' in tool && tool.endpoint.startsWith('http://127.0.0.1:4711/tools/')));
  fits(read('config/demo.yaml'));
});

test('the article’s fragments, joined into one file, load as they stand', () => {
  const file = at('test/fixtures/config/article.yaml').pathname;
  const { config, warnings } = loadConfig({ file, env: {} });
  const smart = config.registry.models.get('smart_model');
  assert.deepEqual(
    smart?.upstreams.map((target) => [target.id, target.weight, target.maxTokens, target.timeoutMs]),
    [
      ['openai/gpt-4o-mini', 70, 2048, 30_000],
      ['anthropic/claude-3-5-sonnet-20241022', 30, 2048, 30_000],
    ],
  );
  assert.equal(smart?.failover.fallback_target, 'fast_model');
  assert.deepEqual([config.session.storage.hot_backend, config.session.storage.redis_url], ['redis', 'redis://127.0.0.1:6379']);
  assert.deepEqual(config.embedding?.provider, 'builtin');
  assert.ok(warnings.some((warning) => warning.includes('OPENAI_API_KEY')));
  fits(readFileSync(file, 'utf8'));
});

test('a file with every block loads as it stands, also against the JSON Schema', () => {
  const file = at('test/fixtures/config/everything.yaml').pathname;
  const env = { SUPPORT_KEY: 'sk-support-0123456789abcdef', BILLING_SECRET: 's', DATABASE_URL: 'sqlite::memory:', OPENAI_API_KEY: 'k', ANTHROPIC_API_KEY: 'k' };
  const { config, warnings } = loadConfig({ file, env });
  assert.deepEqual(
    config.registry.models.get('smart_model')?.upstreams.map((target) => [target.id, target.weight]),
    [
      ['openai/gpt-4o', 70],
      ['claude', 30],
    ],
  );
  assert.equal(config.passthrough.target?.apiBase, 'https://api.openai.com/v1');
  assert.equal(config.shadow?.rules.length, 2);
  assert.deepEqual([config.embedding?.api_base, config.embedding?.api_key_env], ['https://api.openai.com/v1', 'OPENAI_API_KEY']);
  assert.ok(warnings.some((warning) => warning.includes('ALERT_WEBHOOK')));
  assert.ok(warnings.some((warning) => warning.includes('`refund_apply` is no rule')));
  fits(readFileSync(file, 'utf8'));
});

test('the JSON Schema sees what a schema can see', () => {
  const structural = [
    'unknown-section',
    'unknown-key-deep',
    'unknown-choice',
    'missing-models',
    'no-models',
    'model-without-id',
    'wrong-types',
    'bad-pricing',
    'dedupe-field',
    'number-for-text',
  ];
  for (const name of structural) {
    assert.ok(badFiles().includes(`${name}.yaml`), name);
    assert.ok(!valid(parse(readFileSync(`${FOLDER}${name}.yaml`, 'utf8'))), `${name} fits`);
  }
  for (const text of ['body_limit: 20mb', 'drain_timeout_ms: 30s', 'port: "${PORT:-8080}"', 'body_limit: 1024'])
    fits(`models: [{ id: a, provider: simulator }]\nserver: { ${text} }\n`);
});

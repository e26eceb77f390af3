// biome-ignore-all lint/suspicious/noTemplateCurlyInString: `${NAME}` in the configuration is what is tested.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { type LoadOptions, loadConfig } from '../../src/config/load.ts';
import { ConfigError } from '../../src/config/problems.ts';
import { costIn } from '../time-kit.ts';
import { makeConfig } from './make-config.ts';

const folder = mkdtempSync(join(tmpdir(), 'hermes-config-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const MODELS = [{ id: 'fast', provider: 'simulator' }];
const load = (file: Record<string, unknown>, options: LoadOptions = {}) =>
  loadConfig({
    file: join(folder, 'hermes.yaml'),
    text: JSON.stringify({ models: MODELS, default_model: 'fast', ...file }),
    cwd: '/work-here',
    env: {},
    ...options,
  });
const refusal = (file: Record<string, unknown>, options: LoadOptions = {}): string => {
  try {
    load(file, options);
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.message;
  }
  return assert.fail('it was taken');
};

test('flags beat environment, environment beats file, file beats default', () => {
  const port = (options: LoadOptions, server = {}) => load({ server }, options).config.server.port;
  assert.deepEqual(
    [
      port({}),
      port({}, { port: 1 }),
      port({ env: { PORT: '2' } }, { port: 1 }),
      port({ env: { PORT: '2' }, flags: { port: '3' } }, { port: 1 }),
      port({ env: { PORT: ' ' } }, { port: 1 }),
    ],
    [8080, 1, 2, 3, 1],
  );
  assert.equal(load({}, { env: { HOST: '::1' } }).config.server.host, '::1');
  assert.equal(load({}, { env: { HOST: '::1' }, flags: { host: '127.0.0.1' } }).config.server.host, '127.0.0.1');
  assert.match(refusal({}, { env: { PORT: 'http' } }), /^environment PORT: must be a port/);
  assert.match(refusal({}, { flags: { port: '99999' } }), /^flags --port: must be a port/);
  assert.match(refusal({}, { env: { LOG_LEVEL: 'inof' } }), /LOG_LEVEL.*did you mean `info`/);
});

test('the file is the flag’s, else HERMES_CONFIG’s, else config/hermes.yaml', () => {
  const missing = (options: LoadOptions) => {
    try {
      loadConfig({ env: {}, cwd: folder, ...options });
    } catch (error) {
      return error instanceof ConfigError ? error.message : '';
    }
    return '';
  };
  assert.match(missing({}), new RegExp(`^${folder}/config/hermes.yaml: there is no such file`));
  assert.match(missing({ env: { HERMES_CONFIG: 'a.yaml' } }), new RegExp(`^${folder}/a.yaml: there is no such file`));
  assert.match(missing({ file: 'b.yaml', env: { HERMES_CONFIG: 'a.yaml' } }), new RegExp(`^${folder}/b.yaml: there is no such file`));
  assert.match(missing({ file: '.' }), /is a folder, not a file/);
});

test('stores follow the addresses', () => {
  const storage = (env: Record<string, string>, given = {}) => load({ session: { storage: given } }, { env }).config.session.storage;
  assert.deepEqual(
    [storage({}).hot_backend, storage({}).redis_url, storage({}).cold_backend, storage({}).database_url],
    ['memory', undefined, 'sqlite', 'sqlite:////work-here/data/hermes.db'],
  );
  assert.deepEqual([storage({ REDIS_URL: 'redis://a:1' }).hot_backend, storage({ REDIS_URL: 'redis://a:1' }).redis_url], ['redis', 'redis://a:1']);
  assert.equal(storage({}, { hot_backend: 'redis' }).redis_url, 'redis://127.0.0.1:6379');
  assert.equal(storage({ REDIS_URL: 'redis://a:1' }, { hot_backend: 'memory' }).hot_backend, 'memory');
  assert.equal(storage({ REDIS_URL: 'rediss://u:p@a:1,b:2,rediss://c:3' }).hot_backend, 'redis');
  assert.equal(storage({ REDIS_URL: 'redis+sentinel://a:26379,b:26379/prod' }).hot_backend, 'redis');
  assert.equal(storage({ DATABASE_URL: 'sqlite:////abs/h.db' }).database_url, 'sqlite:////abs/h.db');
  assert.equal(storage({ DATABASE_URL: 'sqlite:///rel/h.db' }).database_url, 'sqlite:////work-here/rel/h.db');
  assert.equal(storage({ DATABASE_URL: 'sqlite::memory:' }).database_url, 'sqlite::memory:');
  assert.equal(storage({ DATABASE_URL: 'postgresql+asyncpg://u:p@h/n' }).database_url, 'postgres://u:p@h/n');
  assert.equal(storage({ DATABASE_URL: 'postgres://u@h/n' }, { database_url: 'sqlite:///x', cold_backend: 'postgres' }).cold_backend, 'postgres');
  assert.equal(storage({}, { database_url: 'postgres://u@h/n' }).cold_backend, 'postgres');
});

test('a cold back-end against DATABASE_URL, and addresses without sense, are refused and not shown', () => {
  assert.match(
    refusal({ session: { storage: { cold_backend: 'sqlite' } } }, { env: { DATABASE_URL: 'postgres://u:hidden@h/n' } }),
    /cold_backend: `sqlite` is against the database/,
  );
  for (const env of [{ REDIS_URL: 'http://:hidden@h' }, { DATABASE_URL: 'mysql://u:hidden@h/n' }, { DATABASE_URL: 'hidden' }]) {
    const message = refusal({}, { env });
    assert.match(message, new RegExp(`^environment ${Object.keys(env)[0]}: must be `));
    assert.ok(!message.includes('hidden'));
  }
});

test('with no key at all one is made for this run, and a reload keeps it', () => {
  const first = load({});
  assert.match(first.generatedKey ?? '', /^sk-hermes-.{32}$/);
  assert.notEqual(load({}).generatedKey, first.generatedKey);
  const again = load({}, { generatedKey: first.generatedKey });
  assert.equal(again.generatedKey, first.generatedKey);
  const [key] = again.config.auth.keys;
  assert.deepEqual([key?.admin, again.config.secrets.get(key?.key_env ?? '')], [true, first.generatedKey]);
  for (const env of [{ API_KEY: 'x' }, { ADMIN_API_KEY: 'x' }]) assert.equal(load({}, { env }).generatedKey, undefined);
  assert.equal(load({ auth: { signatures: [{ service: 'a', secret_env: 'S' }] } }, { env: { S: 's' } }).generatedKey, undefined);
});

test('API_KEY is one more key, admin unless ADMIN_API_KEY is set', () => {
  const keys = (env: Record<string, string>) =>
    load({ auth: { keys: [{ id: 'shop', key_env: 'SHOP', services: ['kb'] }] } }, { env: { SHOP: 's', ...env } }).config.auth.keys;
  const [shop, all] = keys({ API_KEY: ' sk-1\n' });
  assert.deepEqual([shop?.service, shop?.services, shop?.project, shop?.projects, shop?.admin, shop?.models], ['shop', ['kb'], 'shop', ['shop'], false, ['*']]);
  assert.deepEqual([all?.key_env, all?.service, all?.project, all?.services, all?.projects, all?.admin], ['API_KEY', 'default', 'default', ['*'], ['*'], true]);
  assert.deepEqual(
    keys({ API_KEY: 'a', ADMIN_API_KEY: 'b' }).map((key) => key.admin),
    [false, false, true],
  );
  assert.equal(keys({ API_KEY: '  ' }).length, 1, 'blank is unset');
  assert.equal(load({}, { env: { API_KEY: ' sk-1\n' } }).config.secrets.get('API_KEY'), 'sk-1');
});

test('a weak key warns and is not shown', () => {
  const warned = (key: string) => load({}, { env: { API_KEY: key } }).warnings.filter((warning) => warning.includes('weak'));
  for (const weak of ['hermes123', 'short-but-mixed-#1', 'averyveryverylongword2024']) {
    assert.equal(warned(weak).length, 1, weak);
    assert.ok(!warned(weak)[0]?.includes(weak));
  }
  assert.deepEqual(warned('sk-suites-3f9c1d7e5a2b48c6'), []);
});

test('names and patterns of keys and signatures that allow nothing are told', () => {
  const { warnings } = load(
    {
      models: [
        { id: 'small', provider: 'simulator', aliases: ['little'] },
        { id: 'large', provider: 'simulator' },
      ],
      default_model: undefined,
      tools: [
        { id: 'order.query', endpoint: 'http://127.0.0.1:1', side_effects: false },
        { id: 'crm', mcp: { url: 'http://127.0.0.1:1' } },
      ],
      auth: {
        keys: [
          { id: 'a', sha256: 'a'.repeat(64), models: ['smal', 'little', 'gpt-*', 'l*'], tools: ['order.qery', 'stock.*', 'crm.find', 'order.*', '*.find'] },
          { id: 'b', sha256: 'b'.repeat(64) },
        ],
        signatures: [{ service: 's', secret_env: 'S', models: ['larg'] }],
      },
    },
    { env: { S: 'x'.repeat(32) } },
  );
  const told = warnings.filter((warning) => warning.includes('allows nothing')).map((warning) => warning.replace(/^\S+ /, ''));
  assert.deepEqual(told, [
    'auth.keys[0].models: `smal` is not a model of the registry (did you mean `small`?): it allows nothing',
    'auth.keys[0].models: `little` is not a model of the registry, but an alias: keys go by ids, so write `small`: it allows nothing',
    'auth.keys[0].models: `gpt-*` fits no model of the registry: it allows nothing',
    'auth.keys[0].tools: `order.qery` is not defined in tools: it allows nothing (did you mean `order.query`?)',
    'auth.keys[0].tools: `stock.*` fits no tool: it allows nothing',
    'auth.signatures[0].models: `larg` is not a model of the registry (did you mean `large`?): it allows nothing',
  ]);
});

test('what is missing is told by name: keys, tools, the default model', () => {
  const { warnings } = load({
    models: [{ id: 'a', provider: 'openai' }],
    default_model: undefined,
    route_rules: [{ id: 'r', match: 'x', model: 'a', tools: ['order.qery'] }],
    tools: [{ id: 'order.query', endpoint: 'http://127.0.0.1:1', side_effects: false }],
  });
  assert.ok(warnings.some((warning) => /OPENAI_API_KEY is not set: calls of a fail/.test(warning)));
  assert.ok(warnings.some((warning) => /nothing defines the tool `order.qery`.*did you mean `order.query`/.test(warning)));
  assert.ok(warnings.some((warning) => /default_model is not given: `a`/.test(warning)));
  for (const warning of warnings) assert.match(warning, /^\/.*hermes\.yaml:\d+:\d+ /);
});

test('a tool that does not say side_effects is taken to have some', () => {
  const { config, warnings } = load({ tools: [{ id: 't', endpoint: 'http://127.0.0.1:1' }] });
  assert.equal(config.tools[0]?.side_effects, true);
  assert.ok(warnings.some((warning) => warning.includes('side_effects')));
});

test('a model called default_model is the default', () => {
  const config = makeConfig({
    models: [
      { id: 'a', provider: 'simulator' },
      { id: 'default_model', provider: 'simulator' },
    ],
    route_rules: [{ id: 'd', match: '.*', model: 'default_model' }],
  });
  assert.equal(config.default_model, 'default_model');
});

test('paths are relative to the file; plugins_dir unset is the working directory’s', () => {
  assert.equal(load({}).config.pipeline.plugins_dir, '/work-here/plugins');
  mkdirSync(join(folder, 'own'), { recursive: true });
  assert.equal(load({ pipeline: { plugins_dir: './own' } }).config.pipeline.plugins_dir, join(folder, 'own'));
  assert.equal(load({ pipeline: { plugins_dir: folder } }).config.pipeline.plugins_dir, folder);
});

test('the shadow’s rules come from their file, as a list or under route_rules', () => {
  const rule = { id: 'next', match: { embedding: { examples: ['a'] } }, model: 'default_model' };
  for (const content of [[rule], { route_rules: [rule] }]) {
    writeFileSync(join(folder, 'next.yaml'), JSON.stringify(content));
    const { config, files } = load({ shadow: { sample: 1, rules_file: './next.yaml' } });
    assert.deepEqual([config.shadow?.rules.map((one) => one.id), config.shadow?.rules_file], [['next'], join(folder, 'next.yaml')]);
    assert.deepEqual(files, [join(folder, 'hermes.yaml'), join(folder, 'next.yaml')]);
    assert.equal(config.embedding?.provider, 'builtin', 'shadow rules embed as well');
  }
});

test('the rollout’s rules come from their file; what is missing or wrong is told', () => {
  writeFileSync(join(folder, 'canary.yaml'), JSON.stringify([{ id: 'canary', match: '.*', model: 'default_model' }]));
  const { config, files } = load({ rollout: { rules_file: 'canary.yaml', percent: 5 }, shadow: { rules_file: 'canary.yaml' } });
  assert.deepEqual(config.rollout, {
    rules_file: join(folder, 'canary.yaml'),
    rules: [{ id: 'canary', match: '.*', model: 'default_model' }],
    percent: 5,
    by: 'session',
  });
  assert.deepEqual(files, [join(folder, 'hermes.yaml'), join(folder, 'canary.yaml')]);
  assert.throws(() => load({ rollout: { percent: 5 } }), /rollout\.rules_file/);
  assert.throws(() => load({ rollout: { rules_file: 'canary.yaml' } }), /rollout\.percent/);
  assert.throws(() => load({ rollout: { rules_file: 'canary.yaml', percent: 101 } }), /rollout\.percent/);
  assert.throws(() => load({ rollout: { rules_file: 'no-such.yaml', percent: 5 } }), /rollout\.rules_file: .*there is no such file/);
  writeFileSync(join(folder, 'canary.yaml'), JSON.stringify([{ id: 'canary', match: '.*', model: 'nobody' }]));
  assert.throws(() => load({ rollout: { rules_file: 'canary.yaml', percent: 5 } }), /canary\.yaml:\d+:\d+.*`nobody` is not a model/s);
});

test('embedding rules get the provider’s address and key, or builtin with a warning', () => {
  const rules = [{ id: 'r', match: { any: [{ embedding: { examples: ['a'] } }] }, model: 'fast' }];
  const alone = load({ route_rules: rules });
  assert.deepEqual(alone.config.embedding, { provider: 'builtin', timeout_ms: 800 });
  assert.ok(alone.warnings.some((warning) => warning.includes('builtin')));
  const served = load(
    {
      embedding: { provider: 'emb', model_name: 'e' },
      providers: { emb: { type: 'openai', api_base: 'http://127.0.0.1:9/v1/', api_key_env: 'UP' } },
      route_rules: rules,
    },
    { env: { UP: 'k' } },
  );
  assert.deepEqual(served.config.embedding, { provider: 'emb', model_name: 'e', timeout_ms: 800, api_base: 'http://127.0.0.1:9/v1', api_key_env: 'UP' });
});

test('matchers of plugins are known when they are told', () => {
  const file = { route_rules: [{ id: 'r', match: { moonphase: 'full' }, model: 'fast' }] };
  assert.match(refusal(file), /moonphase: is not a matcher/);
  assert.equal(load(file, { knownMatchers: ['moonphase'] }).config.route_rules.length, 1);
});

test('provider types of plugins are known when they are told', () => {
  const file = { models: [{ id: 'a', provider: 'mine' }] };
  assert.match(refusal({ ...file, default_model: 'a' }), /`mine` is not a provider/);
  const { config } = load(
    { ...file, default_model: 'a' },
    { knownProviders: { mine: { apiBase: 'https://mine.example', apiKeyEnv: 'MINE' } }, env: { MINE: 'k' } },
  );
  const target = config.registry.models.get('a')?.upstreams[0];
  assert.deepEqual([target?.provider, target?.apiBase, target?.apiKey], ['mine', 'https://mine.example', 'k']);
});

test('numbers, durations, sizes and truth values are read as people write them', () => {
  const text = [
    'models: [{ id: fast, provider: simulator, timeout_ms: 15s, first_token_timeout_ms: "900" }]',
    'server: { body_limit: 1.5mb, drain_timeout_ms: "${DRAIN:-2m}", port: "${PORT_HERE}", max_event_bytes: 2048 }',
    'trim:',
    '  stateless: ${STATELESS}',
    'idempotency: { ttl_seconds: 24h }',
    'route_rules: [{ id: 1a, match: { keywords: [订单, 2024], hours: 02:00-08:00 }, model: fast }]',
    'cost: { schedule: [{ id: n, hours: 22:00-6:00, days: [Mon-Fri, sun], model: fast }] }',
    'limits:',
    'shadow:',
  ].join('\n');
  const { config } = loadConfig({ file: '/x.yaml', text, env: { PORT_HERE: '81', STATELESS: 'true' } });
  const target = config.registry.models.get('fast')?.upstreams[0];
  assert.deepEqual([target?.timeoutMs, target?.firstTokenTimeoutMs], [15_000, 900]);
  assert.deepEqual(
    [config.server.body_limit, config.server.drain_timeout_ms, config.server.port, config.server.max_event_bytes],
    [1_572_864, 120_000, 81, 2048],
  );
  assert.deepEqual(
    [config.trim.stateless, config.idempotency.ttl_seconds, config.cost.schedule[0]?.days, config.limits, config.shadow],
    [true, 86_400, 'mon-fri,sun', [], undefined],
  );
  assert.deepEqual(config.route_rules[0]?.match, { keywords: ['订单', '2024'], hours: '02:00-08:00' });
});

test('fragments joined into one file: a list that stands twice at the top is one, anything else twice is a mistake', () => {
  const models = 'models:\n  - { id: fast, provider: simulator, max_tokens: 7 }\n  - { id: wise, provider: simulator }\ndefault_model: fast\n';
  const rule = (id: string): string => `route_rules:\n  - { id: ${id}, match: .*, model: wise }\n`;
  const later = 'models:\n  - id: fast\n    max_tokens: 9\n';
  const { config } = load({}, { text: models + rule('one') + later + rule('two') });
  assert.deepEqual([...config.registry.models.keys()], ['fast', 'wise']);
  assert.equal(config.registry.models.get('fast')?.upstreams[0]?.maxTokens, 9);
  assert.deepEqual(
    config.route_rules.map(({ id }) => id),
    ['one', 'two'],
  );
  assert.match(refusal({}, { text: `${models}${rule('one')}route_rules:\n  - { id: two, match: .*, model: none }\n` }), /:8:\d+ route_rules\[1\]\.model/);
  for (const twice of ['default_model: wise\n', 'models: { id: x }\n', 'session: { max_history_messages: 4 }\nsession: { max_history_messages: 5 }\n'])
    assert.match(refusal({}, { text: models + twice }), /the same key stands twice/);
});
test('whose word counts for an address must be addresses', () => {
  assert.deepEqual(load({ server: { trusted_proxies: ['10.0.0.0/8', '::1', 'fd00::/8'] } }).config.server.trusted_proxies.length, 3);
  for (const bad of ['300.1.1.1', 'localhost', '10.0.0.0/99', '10.0.0.0/', '::/129', '10.0.0.0/8/8'])
    assert.match(refusal({ server: { trusted_proxies: ['10.0.0.1', bad] } }), /server\.trusted_proxies\[1\]: must be an address or a network/);
});
test('anchors and merge keys work, and mistakes in them are found', () => {
  const text = 'models:\n  - &base { id: a, provider: simulator, max_tokens: 7 }\n  - { <<: *base, id: b, max_token: 3 }\n';
  assert.throws(
    () => loadConfig({ file: '/x.yaml', text, env: {} }),
    /x\.yaml:3:\d+ models\[1\]\.max_token: is not known here \(did you mean `max_tokens`\?\)/,
  );
  assert.equal(loadConfig({ file: '/x.yaml', text: text.replace(', max_token: 3', ''), env: {} }).config.registry.models.get('b')?.maxTokens, 7);
});

test('an unquoted ${NAME} in a flow map is one message that says what to do', () => {
  const text = 'models: [{ id: a, provider: simulator, api_base: ${ADDRESS}, api_key_env: K }]\nserver: { port: 1 }\n';
  assert.throws(() => loadConfig({ file: '/x.yaml', text, env: {} }), { message: '/x.yaml:1:51: a `${NAME}` inside { } or [ ] needs quotes: "${NAME}"' });
});

test('broken YAML never shows what stands in it', () => {
  for (const text of [
    'models: }sk-secret-1',
    'a: "x" sk-secret-1\nb: c',
    '%sk-secret-1\n---\na: b',
    'a: !sk-secret-1 b',
    'a: "\\q sk-secret-1"',
    '@sk-secret-1',
    'a: &x b\nc: *x sk-secret-1: d',
    'models: [sk-secret-1',
    "a: 'sk-secret-1",
    '"sk-secret-1": a: b',
  ]) {
    assert.throws(
      () => loadConfig({ file: '/x.yaml', text, env: {} }),
      (error) => error instanceof ConfigError && !error.message.includes('secret-1') && error.message.includes('/x.yaml:'),
      text,
    );
  }
});

test('a byte order mark and Windows line ends do not matter', () => {
  const { config } = loadConfig({ file: '/x.yaml', text: '\ufeffmodels:\r\n  - id: a\r\n    provider: simulator\r\n', env: {} });
  assert.equal(config.default_model, 'a');
});

test('keys of a block without a value are left out, and unknown names do not reach the prototype', () => {
  const { config } = load({ plugins: JSON.parse('{"__proto__":{"polluted":true},"team-header":{"team":null}}') });
  assert.equal(Reflect.get({}, 'polluted'), undefined);
  assert.deepEqual(config.plugins['team-header'], { team: null });
});

test('ten thousand keywords load for little more than ten times what a thousand cost', async () => {
  const keywords = Array.from({ length: 10_000 }, (_, index) => `词${index}`);
  const loads = (count: number) => () => load({ route_rules: [{ id: 'many', match: { keywords: keywords.slice(0, count) }, model: 'fast' }] });
  const growth = await costIn(loads(1000), loads(10_000));
  assert.ok(growth < 30, `${growth.toFixed(1)} times as much`);
});

test('the way out of the network is that of the environment', () => {
  assert.equal(load({}).config.proxy, undefined);
  const { proxy } = load({}, { env: { https_proxy: 'http://proxy:3128', HTTP_PROXY: ' ', NO_PROXY: 'localhost,.internal' } }).config;
  assert.deepEqual(proxy, { http: undefined, https: 'http://proxy:3128', no: 'localhost,.internal' });
  assert.match(refusal({}, { env: { HTTPS_PROXY: 'proxy:3128' } }), /HTTPS_PROXY.*http:\/\/host:port/);
});

test('several workers need stores that they share', () => {
  const env = { REDIS_URL: 'redis://127.0.0.1:6379', DATABASE_URL: 'postgres://hermes@127.0.0.1/hermes' };
  const workers = (value: unknown) => load({ server: { workers: value } }, { env }).config.server.workers;
  assert.deepEqual([workers(1), workers(4), workers('3')], [1, 4, 3]);
  assert.ok(workers('auto') >= 1);
  for (const value of [2, 'auto'])
    for (const half of [{}, { REDIS_URL: env.REDIS_URL }, { DATABASE_URL: env.DATABASE_URL }])
      assert.match(refusal({ server: { workers: value } }, { env: half }), /server\.workers.*set REDIS_URL=.* and DATABASE_URL=/);
  assert.equal(load({ server: { workers: 1 } }).config.server.workers, 1);
  for (const value of ['many', 0, 1.5, 1000])
    assert.match(refusal({ server: { workers: value } }, { env }), /server\.workers: must be (a whole number from 1 to 256, or auto|at least 1|at most 256)/);
});

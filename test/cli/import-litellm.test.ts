import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'yaml';
import { fromLitellm } from '../../src/cli/import/from-litellm.ts';
import { run } from '../../src/cli/program.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { Config } from '../../src/contracts/config.ts';

const FIXTURES = fileURLToPath(new URL('../fixtures/litellm/', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'hermes-import-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const KEYS = ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'DEEPSEEK_API_KEY', 'AZURE_EU_KEY', 'AZURE_US_KEY', 'GROQ_API_KEY', 'GATEWAY_KEY', 'LITELLM_MASTER_KEY'];
const env = { ...Object.fromEntries(KEYS.map((name) => [name, `sk-${name}-0123456789`])), GATEWAY_URL: 'http://gateway/v1' };
function imported(name: string): { config: Config; findings: string; text: string } {
  const { config, findings } = fromLitellm(parse(readFileSync(join(FIXTURES, name), 'utf8')));
  const text = stringify(config);
  return { config: loadConfig({ file: join(folder, name), text, env }).config, findings: findings.join('\n'), text };
}
const model = (config: Config, id: string) => {
  const found = config.registry.find(id);
  assert.ok(found, id);
  return found;
};

describe('a configuration of LiteLLM', () => {
  it('becomes one of hermes that is good, whatever of the three it is', () => {
    for (const name of readdirSync(FIXTURES)) assert.ok(imported(name).config.registry.models.size >= 2, name);
  });
  it('keeps the names that callers use, the addresses, the prices and the limits', () => {
    const { config } = imported('one-key-many-models.yaml');
    assert.deepEqual([...config.registry.models.keys()], ['gpt-4o', 'gpt-4o-mini', 'claude-sonnet', 'deepseek']);
    const [upstream] = model(config, 'gpt-4o').upstreams;
    assert.deepEqual([upstream?.modelName, upstream?.apiKeyEnv, upstream?.maxTokens, upstream?.timeoutMs], ['gpt-4o', 'OPENAI_API_KEY', 4096, 30_000]);
    assert.equal(model(config, 'claude-sonnet').upstreams[0]?.provider, 'anthropic');
    assert.equal(model(config, 'deepseek').upstreams[0]?.apiBase, 'https://api.deepseek.com/v1');
    assert.match(JSON.stringify(model(config, 'gpt-4o-mini').pricing), /0\.15.*0\.6/);
  });
  it('never brings a key along', () => {
    const { text, findings } = imported('one-key-many-models.yaml');
    assert.doesNotMatch(text + findings, /sk-a-key/);
    assert.match(findings, /set the variable DEEPSEEK_API_KEY/);
    const other = imported('self-hosted.yaml');
    assert.doesNotMatch(other.text + other.findings, /not-for-copying/);
    assert.match(other.findings, /x-api-token/);
  });
  it('turns deployments of one name into upstreams with their weights', () => {
    const { config } = imported('load-balanced.yaml');
    const gpt = model(config, 'gpt-4o');
    assert.deepEqual(
      gpt.upstreams.map(({ modelName, weight, apiBase }) => [modelName, weight, apiBase]),
      [
        ['gpt-4o-eu', 900, 'https://eu.openai.azure.com'],
        ['gpt-4o-us', 100, 'https://us.openai.azure.com'],
      ],
    );
    assert.deepEqual(
      [gpt.failover.strategy, gpt.failover.max_attempts, gpt.failover.failure_threshold, gpt.failover.cooldown_ms],
      ['weighted_round_robin', 3, 4, 30_000],
    );
    const small = model(config, 'small');
    assert.deepEqual([small.failover.strategy, small.upstreams[0]?.modelName], ['priority', 'gpt-4o-mini']);
    assert.equal(model(config, 'claude').failover.max_attempts, 1);
    assert.equal(config.registry.find('gpt-4'), gpt);
  });
  it('takes fallbacks over, without the one that would close a circle', () => {
    const { config, findings } = imported('load-balanced.yaml');
    assert.deepEqual([model(config, 'gpt-4o').failover.fallback_target, model(config, 'claude').failover.fallback_target], ['claude', 'small']);
    assert.match(findings, /fallbacks\.claude: gpt-4o would close a circle/);
    assert.match(findings, /fallbacks\.gpt-4o: a model has one fallback \(claude\).*small/);
  });
  it('tells what is said of models that are not there', () => {
    const { findings } = fromLitellm({
      model_list: [{ model_name: 'g', litellm_params: { model: 'openai/gpt-4o' } }],
      router_settings: { fallbacks: [{ zz: ['g'] }], model_group_alias: { other: 'yy' } },
    });
    assert.match(findings.join('\n'), /fallbacks\.zz: zz is no model of this file: its fallbacks \(g\) were left out/);
    assert.match(findings.join('\n'), /model_group_alias: yy is no model of this file: its other names \(other\) were left out/);
  });
  it('gives Ollama, whose own address LiteLLM is told, the one beneath which it speaks as OpenAI does', () => {
    for (const [given, taken] of [
      ['http://localhost:11434', 'http://localhost:11434/v1'],
      ['http://localhost:11434/', 'http://localhost:11434/v1'],
      ['http://localhost:11434/api/chat', 'http://localhost:11434/v1'],
      ['http://localhost:11434/v1', 'http://localhost:11434/v1'],
      ['os.environ/OLLAMA', `$\{OLLAMA}/v1`],
      [undefined, 'http://127.0.0.1:11434/v1'],
    ]) {
      const { config } = fromLitellm({ model_list: [{ model_name: 'm', litellm_params: { model: 'ollama/llama3', api_base: given } }] });
      assert.equal((config.models as { api_base?: string }[])[0]?.api_base, taken);
    }
    const { config } = fromLitellm({ model_list: [{ model_name: 'm', litellm_params: { model: 'hosted_vllm/x', api_base: 'http://vllm:8000' } }] });
    assert.equal((config.models as { api_base?: string }[])[0]?.api_base, 'http://vllm:8000');
  });
  it('names every part that did not come along', () => {
    const { findings } = imported('self-hosted.yaml');
    for (const part of [
      '"anthropic/*" stands for any model',
      'model_list[4].litellm_params.model: "bedrock"',
      'model_list[5].litellm_params.api_base',
      'litellm_params.tags',
      'guardrails',
      'LANGFUSE_HOST',
      'usage-based-routing-v2',
    ])
      assert.ok(findings.includes(part), `${part} in\n${findings}`);
    for (const part of ['master_key: is a key in the file', 'database_url', 'general_settings.alerting', 'REDIS_URL', '.rpm'])
      assert.ok(imported('load-balanced.yaml').findings.includes(part), part);
    assert.match(imported('one-key-many-models.yaml').findings, /litellm_settings\.callbacks/);
  });
  it('lets the master key in, with all rights, by its variable', () => {
    const { config } = imported('one-key-many-models.yaml');
    assert.deepEqual(
      config.auth.keys.map(({ id, key_env, admin, models }) => [id, key_env, admin, models]),
      [['master', 'LITELLM_MASTER_KEY', true, ['*']]],
    );
    assert.equal(config.passthrough.target?.apiBase, 'https://api.openai.com/v1');
  });
});

describe('hermes import litellm', () => {
  it('writes a file that config check takes, and never over another', async () => {
    const out = join(folder, 'out.yaml');
    const command = ['node', 'hermes', 'import', 'litellm', join(FIXTURES, 'load-balanced.yaml'), '--out', out];
    assert.equal(await run(command), 0);
    assert.match(readFileSync(out, 'utf8'), /^# Made of a LiteLLM configuration\.\n#\n# To be looked at:\n# {3}/);
    assert.doesNotThrow(() => loadConfig({ file: out, env }));
    assert.equal(await run(command), 1);
  });
  it('says so when the file is nothing that it knows', async () => {
    assert.equal(await run(['node', 'hermes', 'import', 'litellm', join(folder, 'absent.yaml')]), 1);
    assert.equal(await run(['node', 'hermes', 'import', 'litellm', fileURLToPath(new URL('../../config/hermes.yaml', import.meta.url))]), 1);
  });
});

import type { Config } from '../contracts/config.ts';
import { usesEmbedding } from './assemble.ts';
import { isWeak } from './environment.ts';
import type { Path } from './problems.ts';
import type { ConfigFile } from './schema.ts';

type Warn = (path: Path, message: string) => void;

/** What is allowed, and rarely meant. `warn` without a path: the environment. */
export function warnAbout(config: Config, file: ConfigFile, warn: Warn): void {
  if (file.default_model === undefined) warn(['models'], `default_model is not given: \`${config.default_model}\` serves what no rule takes`);
  warnOfMissingKeys(config, file, warn);
  if (file.embedding === undefined && usesEmbedding([...config.route_rules, ...(config.shadow?.rules ?? []), ...(config.rollout?.rules ?? [])])) {
    warn(['route_rules'], 'embedding rules without an `embedding:` block use `builtin`, which knows words rather than meaning');
  }
  file.tools.forEach((tool, index) => {
    if (tool.side_effects === undefined && tool.mcp === undefined)
      warn(['tools', index], `\`${tool.id}\` does not say side_effects: it is taken to have some; write \`side_effects: false\` when it only reads`);
  });
  for (const [name, provider] of Object.entries(file.providers)) {
    if (provider.type === 'openai' && name !== 'openai' && provider.api_base === undefined)
      warn(['providers', name], 'has no api_base: https://api.openai.com/v1 is assumed');
  }
  if (config.trace.capture_content === 'hashes' && config.trace.hash_key_env === undefined)
    warn(['trace'], '`hashes` without `hash_key_env` are plain SHA-256: short messages can be guessed from them');
  const owners = new Map<string, string>();
  for (const key of config.auth.keys) {
    const value = key.key_env === undefined ? undefined : config.secrets.get(key.key_env);
    const owner = value === undefined ? undefined : owners.get(value);
    if (owner !== undefined) warn([], `the keys ${owner} and ${key.id} are the same: ${owner} is used`);
    if (value !== undefined) owners.set(value, owner ?? key.id);
    if (value !== undefined && isWeak(value)) {
      warn([], `the key in ${key.key_env} is weak (under 20 characters, or a word and digits): use a long random one, like that of \`openssl rand -hex 24\``);
    }
  }
}

function warnOfMissingKeys(config: Config, file: ConfigFile, warn: Warn): void {
  const missing = new Map<string, Set<string>>();
  for (const model of config.registry.models.values()) {
    for (const target of model.upstreams) {
      if (target.apiKeyEnv === undefined || target.apiKey !== undefined) continue;
      missing.set(target.apiKeyEnv, (missing.get(target.apiKeyEnv) ?? new Set()).add(target.id));
    }
  }
  for (const [name, upstreams] of missing) {
    warn(
      placeOfKey(file, name),
      `the environment variable ${name} is not set: calls of ${[...upstreams].join(', ')} fail with upstream_key_missing until it is`,
    );
  }
  const notSet = (name: string | undefined, path: Path, what: string) => {
    if (name !== undefined && !config.secrets.has(name)) warn(path, `the environment variable ${name} is not set: ${what}`);
  };
  notSet(config.embedding?.api_key_env, ['embedding'], 'embedding rules are skipped until it is');
  notSet(config.passthrough.target?.apiKeyEnv, ['passthrough', 'upstream'], 'passed-through requests fail until it is');
  file.cost.budgets.forEach((budget, index) => {
    notSet(budget.notify?.url_env, ['cost', 'budgets', index, 'notify'], 'nobody is told when the budget is crossed');
  });
}
function placeOfKey(file: ConfigFile, name: string): Path {
  const index = file.models.findIndex((model) => model.api_key_env === name);
  if (index >= 0) return ['models', index, 'api_key_env'];
  const provider = Object.entries(file.providers).find(([, entry]) => entry.api_key_env === name);
  return provider ? ['providers', provider[0], 'api_key_env'] : ['models'];
}

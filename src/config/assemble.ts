import { dirname, isAbsolute, resolve } from 'node:path';
import type { Config, KeyConfig, McpServerConfig, ModelRegistry, RuleConfig } from '../contracts/config.ts';
import type { UpstreamTarget } from '../contracts/exchange.ts';
import { toSignatures } from './environment.ts';
import type { Inventory, KnownProviders } from './inventory.ts';
import { usesMatcher } from './match.ts';
import type { Overrides } from './overrides.ts';
import { usableProcessors } from './processors.ts';
import type { ConfigFile } from './schema.ts';

export interface Parts {
  /** The configuration file, absolute. */
  path: string;
  cwd: string;
  inventory: Inventory;
  known: KnownProviders;
  registry: ModelRegistry;
  passthrough: UpstreamTarget | undefined;
  keys: KeyConfig[];
  secrets: ReadonlyMap<string, string>;
  /** The shadow's rules, and the rollout's. */
  candidates: RuleConfig[];
  rollout: RuleConfig[];
  overrides: Overrides;
  storage: Config['session']['storage'];
}

/** Paths in the configuration are relative to its file. */
export function relativeTo(file: string, path: string): string {
  return isAbsolute(path) ? path : resolve(dirname(file), path);
}

/** The configuration as the pipeline sees it, from a file that holds no mistakes any more. */
export function assemble(file: ConfigFile, parts: Parts): Config {
  const { overrides, registry } = parts;
  const { $schema: _, providers: __, models: ___, ...blocks } = file;
  const timezone = file.cost.timezone ?? new Intl.DateTimeFormat().resolvedOptions().timeZone;
  const idOf = (name: string) => parts.inventory.idOf(name) ?? name;
  // `default_model` stays as it is in rules: it is told as such by explain and lint.
  const toRule = (rule: RuleConfig): RuleConfig => ({ ...rule, model: rule.model === 'default_model' ? rule.model : idOf(rule.model) });
  const summarize = file.session.summarize_dropped;
  const config: Omit<Config, 'secrets'> = {
    ...blocks,
    file: parts.path,
    proxy: overrides.proxy,
    registry,
    server: {
      ...file.server,
      host: overrides.host ?? file.server.host,
      port: overrides.port ?? file.server.port,
      workers: file.server.workers === 'auto' ? usableProcessors() : file.server.workers,
    },
    auth: { keys: parts.keys, signatures: toSignatures(file) },
    default_model: registry.defaultModel,
    route_rules: file.route_rules.map(toRule),
    embedding: toEmbedding(file, parts),
    session: { ...file.session, storage: parts.storage, summarize_dropped: summarize && { ...summarize, model: idOf(summarize.model) } },
    ...toTools(file.tools),
    cost: {
      ...file.cost,
      timezone,
      schedule: file.cost.schedule.map((entry) => ({ ...entry, model: idOf(entry.model) })),
      budgets: file.cost.budgets.map((entry) => ({ ...entry, switch_to: entry.switch_to && idOf(entry.switch_to) })),
    },
    shadow: file.shadow && {
      ...file.shadow,
      rules_file: file.shadow.rules_file && relativeTo(parts.path, file.shadow.rules_file),
      rules: parts.candidates.map(toRule),
    },
    rollout: file.rollout && {
      ...file.rollout,
      rules_file: relativeTo(parts.path, file.rollout.rules_file),
      rules: parts.rollout.map(toRule),
    },
    passthrough: { ...file.passthrough, target: parts.passthrough },
    pipeline: { ...file.pipeline, plugins_dir: pluginsFolder(file, parts) },
    routing: { ...file.routing, timezone: file.routing.timezone ?? timezone },
    log: { level: overrides.level ?? file.log.level },
  };
  return withSecrets(config, parts.secrets);
}

/** Not enumerable: JSON, loggers and spreads never see them. */
function withSecrets(config: Omit<Config, 'secrets'>, secrets: ReadonlyMap<string, string>): Config {
  return Object.defineProperty(config, 'secrets', { value: secrets, enumerable: false }) as Config;
}

/** Tools with an address of their own, and sources of tools. */
function toTools(entries: ConfigFile['tools']): Pick<Config, 'tools' | 'tool_sources'> {
  const tools: Config['tools'] = [];
  const tool_sources: Config['tool_sources'] = [];
  for (const { endpoint, mcp, description, parameters, secret_env, ...settings } of entries) {
    if (mcp) tool_sources.push({ ...settings, mcp: toServer(mcp) });
    else if (endpoint !== undefined) tools.push({ ...settings, description, parameters, secret_env, endpoint, side_effects: settings.side_effects ?? true });
  }
  return { tools, tool_sources };
}
function toServer({ command, env = {}, url = '', headers = {}, secret_env }: NonNullable<ConfigFile['tools'][number]['mcp']>): McpServerConfig {
  return command ? { command, env } : { url, headers, secret_env };
}

function pluginsFolder(file: ConfigFile, parts: Parts): string {
  return file.pipeline.plugins_dir === undefined ? resolve(parts.cwd, 'plugins') : relativeTo(parts.path, file.pipeline.plugins_dir);
}

export function usesEmbedding(rules: readonly RuleConfig[]): boolean {
  return rules.some((rule) => usesMatcher(rule.match, 'embedding'));
}
/** Embedding rules without a service use the one in this process; a provider's address and key are filled in. */
function toEmbedding(file: ConfigFile, parts: Parts): Config['embedding'] {
  if (file.embedding === undefined)
    return usesEmbedding([...file.route_rules, ...parts.candidates, ...parts.rollout]) ? { provider: 'builtin', timeout_ms: 800 } : undefined;
  const name = file.embedding.provider;
  if (name === 'builtin') return file.embedding;
  const entry = Object.hasOwn(file.providers, name) ? file.providers[name] : undefined;
  const defaults = parts.known[entry?.type ?? name] ?? {};
  const apiBase = file.embedding.api_base ?? entry?.api_base ?? defaults.apiBase;
  // As for models: a key goes only to the address that it was written for.
  const theirs = file.embedding.api_base === undefined ? entry?.api_key_env : undefined;
  const usual = apiBase === defaults.apiBase ? defaults.apiKeyEnv : undefined;
  return { ...file.embedding, api_base: apiBase, api_key_env: file.embedding.api_key_env ?? theirs ?? usual };
}

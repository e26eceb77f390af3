import { type LoadedConfig, type LoadOptions, loadConfig } from '../config/load.ts';
import type { Config } from '../contracts/config.ts';
import type { Log } from '../contracts/telemetry.ts';
import { hasUserPlugins } from '../pipeline/load-plugins.ts';
import { allows } from '../wire/patterns.ts';
import { loadRegistries, type Registries } from './registries.ts';

export interface ConfigReader {
  readonly registries: Registries;
  /** Reads and validates; throws a ConfigError with every mistake. `generatedKey`: the one that an earlier reading made. */
  read(generatedKey?: string): LoadedConfig;
}

/** Reads a configuration by the names that hermes' folders, and the user's plugins, know. */
export async function createConfigReader(options: LoadOptions): Promise<ConfigReader> {
  const [registries, pluginsMayAdd] = await Promise.all([loadRegistries(), hasUserPlugins()]);
  const knownProviders = Object.fromEntries([...registries.providers].map(([name, { defaults }]) => [name, defaults ?? {}]));
  const knownMatchers = [...registries.matchers.keys()];
  return {
    registries,
    read: (generatedKey) => loadConfig({ ...options, knownMatchers, knownProviders, pluginsMayAdd, ...(generatedKey ? { generatedKey } : {}) }),
  };
}

/** What plugins were to add and did not; said once they are set up. */
export function checkAdded(config: Config, registries: Registries): void {
  const missing = config.registry.upstreams.filter(({ provider }) => !registries.providers.has(provider)).map(({ provider }) => provider);
  if (missing.length > 0) {
    const known = [...registries.providers.keys()].join(', ');
    throw new Error(`${config.file}: no plugin adds the provider ${[...new Set(missing)].join(', ')}; known are ${known}`);
  }
}

/** Tools that rules name and neither the file nor a plugin defines; without plugins the reading of the file has told of them. */
export function warnOfMissingTools({ route_rules, tools, tool_sources }: Config, log: Log): void {
  const known = [...tools.map(({ id }) => id), ...tool_sources.map(({ id }) => `${id}.*`)];
  for (const rule of route_rules)
    for (const tool of rule.tools ?? [])
      if (!known.some((name) => allows([name], tool) || allows([tool], name)))
        log.warn({ rule: rule.id, tool }, 'nothing defines this tool: it will not be available');
}

import { type LoadedConfig, type LoadOptions, loadConfig } from '../config/load.ts';
import { hasUserPlugins } from '../pipeline/load-plugins.ts';
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

import type { LoadedConfig } from '../config/load.ts';
import type { Config } from '../contracts/config.ts';

/** The same configuration, with its stores in memory: for commands that work beside a running gateway. `tools: false`: nor are MCP servers started. */
export function withoutStores(loaded: LoadedConfig, { tools = true } = {}): LoadedConfig {
  const { config } = loaded;
  const storage = { ...config.session.storage, hot_backend: 'memory', cold_backend: 'sqlite', database_url: 'sqlite::memory:', redis_url: undefined } as const;
  const changed: Omit<Config, 'secrets'> = {
    ...config,
    session: { ...config.session, storage },
    ...(tools ? {} : { tool_sources: [] }),
  };
  return { ...loaded, config: Object.defineProperty(changed, 'secrets', { value: config.secrets, enumerable: false }) as Config };
}

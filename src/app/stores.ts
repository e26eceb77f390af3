import type { ColdStore } from '../contracts/cold-store.ts';
import type { Config } from '../contracts/config.ts';
import type { HotStore } from '../contracts/hot-store.ts';
import type { Environment, Log, Metrics } from '../contracts/telemetry.ts';
import { loadOwnFolder } from '../pipeline/load-folder.ts';

type StoreFactory<T> = (options: { url: string; keyPrefix: string; log: Log; metrics: Metrics; environment: Environment }) => T;

export interface StoreParts {
  log: Log;
  metrics: Metrics;
  environment: Environment;
}

/** The hot store that the configuration names; one that is away is a warning of its own. */
export async function openHot(config: Config, parts: StoreParts): Promise<HotStore> {
  const { hot_backend, redis_url } = config.session.storage;
  return make(await loadOwnFolder<StoreFactory<HotStore>>('src/stores/hot'), hot_backend, redis_url ?? '', config, parts);
}

/** The cold store that the configuration names, open. Rejects when it cannot be opened. */
export async function openCold(config: Config, parts: StoreParts): Promise<ColdStore> {
  const { cold_backend, database_url } = config.session.storage;
  const folder = await loadOwnFolder<StoreFactory<ColdStore>>('src/stores/cold');
  const cold = make(folder, cold_backend === 'sqlite' ? 'sqljs' : 'postgres', database_url, config, parts);
  await cold.open();
  return cold;
}

function make<T>(registry: ReadonlyMap<string, StoreFactory<T>>, name: string, url: string, config: Config, parts: StoreParts): T {
  const create = registry.get(name);
  if (create === undefined) throw new Error(`there is no store called ${name}; there are ${[...registry.keys()].join(', ')}`);
  return create({ url, keyPrefix: config.redis.key_prefix, ...parts });
}

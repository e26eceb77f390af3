import type { ColdStore } from '../contracts/cold-store.ts';
import type { Config } from '../contracts/config.ts';
import type { HotStore } from '../contracts/hot-store.ts';
import type { Environment, Log, Metrics } from '../contracts/telemetry.ts';
import { loadOwnFile } from '../pipeline/load-folder.ts';

type StoreFactory<T> = (options: { url: string; keyPrefix: string; log: Log; metrics: Metrics; environment: Environment }) => T;

export interface StoreParts {
  log: Log;
  metrics: Metrics;
  environment: Environment;
}

/** The hot store that the configuration names; one that is away is a warning of its own. */
export async function openHot(config: Config, parts: StoreParts): Promise<HotStore> {
  const { hot_backend, redis_url } = config.session.storage;
  const create = await loadOwnFile<StoreFactory<HotStore>>('src/stores/hot', hot_backend);
  return create({ url: redis_url ?? '', keyPrefix: config.redis.key_prefix, ...parts });
}

/** The cold store that the configuration names, open. Rejects when it cannot be opened. */
export async function openCold(config: Config, parts: StoreParts): Promise<ColdStore> {
  const { cold_backend, database_url } = config.session.storage;
  const create = await loadOwnFile<StoreFactory<ColdStore>>('src/stores/cold', cold_backend === 'sqlite' ? 'sqljs' : 'postgres');
  const cold = create({ url: database_url, keyPrefix: config.redis.key_prefix, ...parts });
  await cold.open();
  return cold;
}

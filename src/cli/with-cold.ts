import { systemEnvironment } from '../app/house.ts';
import { createConfigReader } from '../app/read-config.ts';
import { openCold } from '../app/stores.ts';
import type { ColdStore } from '../contracts/cold-store.ts';
import type { Config } from '../contracts/config.ts';
import type { Environment, Log, Metrics } from '../contracts/telemetry.ts';
import { createLog } from '../telemetry/log.ts';
import { createMetrics } from '../telemetry/metrics.ts';

export interface ColdParts {
  config: Config;
  cold: ColdStore;
  log: Log;
  metrics: Metrics;
  environment: Environment;
}

/** Opens the cold store of a configuration for as long as `work` takes, and nothing else: no plugin is set up, no tool program started. */
export async function withCold<T>(options: { config?: string }, work: (parts: ColdParts) => Promise<T>): Promise<T> {
  const { config } = (await createConfigReader({ file: options.config })).read();
  const parts = { log: createLog('error', process.stderr), metrics: createMetrics(), environment: systemEnvironment };
  const cold = await openCold(config, parts);
  try {
    return await work({ config, cold, ...parts });
  } finally {
    await cold.close();
  }
}

import { createHouse, type House, systemEnvironment } from '../app/house.ts';
import type { Registries } from '../app/registries.ts';
import { withoutStores } from '../app/without-stores.ts';
import type { Config } from '../contracts/config.ts';
import type { Environment } from '../contracts/telemetry.ts';
import { createLog } from '../telemetry/log.ts';
import { createMetrics } from '../telemetry/metrics.ts';

/** The rooms and plugins of a configuration, set up as at a start, without its stores and servers of tools: for commands that look. */
export function createQuietHouse(config: Config, registries: Registries, environment: Environment = systemEnvironment): Promise<House> {
  const log = createLog('error', process.stderr);
  return createHouse({ config: withoutStores(config, { tools: false }), log, metrics: createMetrics(), environment }, registries);
}

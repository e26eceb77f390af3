import { createHouse, type House, systemEnvironment } from '../app/house.ts';
import type { Registries } from '../app/registries.ts';
import { withoutStores } from '../app/without-stores.ts';
import type { LoadedConfig } from '../config/load.ts';
import type { Environment } from '../contracts/telemetry.ts';
import { hasUserPlugins } from '../pipeline/load-plugins.ts';
import { createLog } from '../telemetry/log.ts';
import { createMetrics } from '../telemetry/metrics.ts';

/** The rooms and plugins of a configuration, set up as at a start, without its stores and servers of tools: for commands that look. */
export function createQuietHouse(loaded: LoadedConfig, registries: Registries, environment: Environment = systemEnvironment): Promise<House> {
  const log = createLog('error', process.stderr);
  return createHouse({ loaded: withoutStores(loaded, { tools: false }), log, metrics: createMetrics(), environment }, registries);
}

/** Lets the plugins add to the registries and to the configuration's tools: their files, settings and order are checked. */
export async function setUpPlugins(loaded: LoadedConfig, registries: Registries): Promise<void> {
  // Only where there are any it takes the second that setting up takes.
  const { pipeline, plugins } = loaded.config;
  if (pipeline.order.length === 0 && Object.keys(plugins).length === 0 && !(await hasUserPlugins())(pipeline.plugins_dir)) return;
  await (await createQuietHouse(loaded, registries)).close();
}

import type { ReloadResult } from '../config/reload.ts';
import type { Log, Metrics } from '../contracts/telemetry.ts';

/** The log and the metric of every reload. */
export function tellReload(log: Log, metrics: Metrics): (result: ReloadResult) => void {
  const reloads = metrics.counter('hermes_config_reloads_total', 'Configurations taken or refused while running.', ['outcome']);
  return ({ outcome, cause, warnings, mistakes }) => {
    for (const warning of warnings) log.warn({}, warning);
    if (outcome === 'ok') log.info({ cause }, 'configuration reloaded');
    else log.error({ cause, mistakes }, 'configuration refused, the old one stays');
    // Last: whoever sees the count finds the reason in the log.
    reloads.inc({ outcome });
  };
}

import type { Environment, Log, Metrics } from '../../../contracts/telemetry.ts';

/** What every cold engine is made of. */
export interface ColdStoreOptions {
  /** `sqlite:///path`, `sqlite::memory:` or `postgres://…`. */
  url: string;
  keyPrefix: string;
  log: Log;
  metrics: Metrics;
  environment: Environment;
}

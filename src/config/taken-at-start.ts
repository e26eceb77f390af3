import type { Config } from '../contracts/config.ts';

/** What a process takes up when it starts, and then never again; addresses may hold passwords, so no value is ever told. */
const TAKEN: Readonly<Record<string, (config: Config) => unknown>> = {
  'server.host': ({ server }) => server.host,
  'server.port': ({ server }) => server.port,
  'server.workers (between one and several)': ({ server }) => server.workers > 1,
  'server.header_timeout_ms': ({ server }) => server.header_timeout_ms,
  'server.request_timeout_ms': ({ server }) => server.request_timeout_ms,
  'server.keep_alive_timeout_ms': ({ server }) => server.keep_alive_timeout_ms,
  'session.storage.hot_backend': ({ session }) => session.storage.hot_backend,
  'session.storage.cold_backend': ({ session }) => session.storage.cold_backend,
  REDIS_URL: ({ session }) => session.storage.redis_url,
  DATABASE_URL: ({ session }) => session.storage.database_url,
  'redis.key_prefix': ({ redis }) => redis.key_prefix,
  'pipeline.plugins_dir': ({ pipeline }) => pipeline.plugins_dir,
  'log.level': ({ log }) => log.level,
};

/** One warning for each setting that `next` changes and a reload does not. */
export function warnOfTakenAtStart(started: Config, next: Config): string[] {
  return Object.entries(TAKEN)
    .filter(([, read]) => read(started) !== read(next))
    .map(([name]) => `${name} has changed: that takes a restart, until then the old one holds`);
}

import type { Log } from '../contracts/telemetry.ts';
import type { House } from './house.ts';

const EVERY_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** Deletes what has been kept long enough: sessions by `session.retention_days`, traces by `trace.keep_days`. At the start, then every hour. */
export function startHousekeeping(house: House, log: Log): { stop(): void } {
  const sweep = async (): Promise<void> => {
    const { config } = house.generation();
    try {
      const sessions = await house.rooms.sessions.sweep(config);
      const traces = await house.cold.deleteTracesBefore(house.environment.now() - config.trace.keep_days * DAY_MS);
      if (sessions + traces > 0) log.info({ sessions, traces }, 'deleted what was kept long enough');
    } catch (err) {
      log.warn({ err }, 'the store could not be swept; it is tried again in an hour');
    }
  };
  const first = setTimeout(() => void sweep(), 10_000).unref();
  const timer = setInterval(() => void sweep(), EVERY_MS).unref();
  return {
    stop() {
      clearTimeout(first);
      clearInterval(timer);
    },
  };
}

import type { Log } from '../contracts/telemetry.ts';
import type { House } from './house.ts';

const EVERY_MS = 3_600_000;

/** Deletes sessions that have been kept long enough (`session.retention_days`): soon after the start, then every hour. */
export function startHousekeeping(house: House, log: Log): { stop(): void } {
  const sweep = async (): Promise<void> => {
    try {
      const sessions = await house.rooms.sessions.sweep(house.generation().config);
      if (sessions > 0) log.info({ sessions }, 'sessions deleted that were kept long enough');
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

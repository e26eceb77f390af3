import type { Log } from '../contracts/telemetry.ts';

/** Waits for SIGTERM or SIGINT, stops, and resolves when all is done. A second signal ends the process at once. */
export async function untilStopped(log: Log, stop: () => Promise<void>, kill: () => void = () => undefined): Promise<void> {
  await new Promise<void>((resolve) => {
    let stopping = false;
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        if (stopping) {
          kill();
          process.exit(130);
        }
        stopping = true;
        log.info({ signal }, 'stopping');
        stop().then(resolve, (err: unknown) => {
          log.error({ err }, 'stopping failed');
          process.exitCode = 1;
          resolve();
        });
      });
    }
  });
  log.info({}, 'stopped');
  endSoon();
}

/** Whatever is still open (an idle connection of a client library) must not hold the process. */
export function endSoon(): void {
  setTimeout(() => process.exit(), 1000).unref();
}

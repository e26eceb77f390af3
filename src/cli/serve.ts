import type { Command } from 'commander';
import { createApp } from '../app.ts';
import type { LoadOptions } from '../config/load.ts';
import { createLog } from '../telemetry/log.ts';
import { boundHeap } from './bound-heap.ts';

export interface ServeOptions {
  config?: string;
  port?: string;
  host?: string;
  /** Instead of the process's. */
  env?: LoadOptions['env'];
}

export function registerServeCommand(program: Command): void {
  program
    .command('serve', { isDefault: true })
    .description('Start the gateway.')
    .option('--config <file>', 'configuration file (default: HERMES_CONFIG, else config/hermes.yaml)')
    .option('--port <port>', 'port to listen on')
    .option('--host <host>', 'address to listen on')
    .action((options: ServeOptions) => serve(options));
}

/** Runs until SIGTERM or SIGINT; resolves when everything is flushed. A second signal ends it at once. */
export async function serve(options: ServeOptions, onReady?: (app: Awaited<ReturnType<typeof createApp>>) => void): Promise<void> {
  const grow = boundHeap();
  const app = await createApp({ load: { file: options.config, flags: { port: options.port, host: options.host }, env: options.env }, createLog });
  const { log } = app;
  if (app.generatedKey !== undefined) process.stderr.write(`No key is configured. For this run only: ${app.generatedKey}\n`);
  const host = app.host.includes(':') ? `[${app.host}]` : app.host;
  log.info({ address: `http://${host}:${app.port}`, port: app.port, config: app.config().file }, 'listening');
  onReady?.(app);
  grow();
  process.on('SIGHUP', () => void app.reload());
  await new Promise<void>((resolve) => {
    let stopping = false;
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        if (stopping) process.exit(130);
        stopping = true;
        log.info({ signal }, 'stopping');
        app.stop().then(resolve, (err: unknown) => {
          log.error({ err }, 'stopping failed');
          process.exitCode = 1;
          resolve();
        });
      });
    }
  });
  log.info({}, 'stopped');
  // Whatever is still open (an idle connection of a client library) must not hold the process.
  setTimeout(() => process.exit(), 1000).unref();
}

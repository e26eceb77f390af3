import type { Command } from 'commander';
import { type ConfigReader, createConfigReader } from '../app/read-config.ts';
import type { LoadedConfig, LoadOptions } from '../config/load.ts';
import type { Log } from '../contracts/telemetry.ts';
import { createLog } from '../telemetry/log.ts';
import { boundHeap } from './bound-heap.ts';
import { untilStopped } from './until-stopped.ts';

/** A balancer that keeps connections may be sending on one that looks idle from here: busy ones have their last answer within it. */
const IDLE_MS = 2000;

export interface ServeOptions {
  config?: string;
  port?: string;
  host?: string;
  /** Instead of the process's. */
  env?: LoadOptions['env'];
}
export interface Address {
  host: string;
  port: number;
}
/** What was read before it was known how many processes there will be. */
interface Start {
  load: LoadOptions;
  reader: ConfigReader;
  loaded: LoadedConfig;
  ready(log: Log, address: Address, more?: object): void;
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
export async function serve(options: ServeOptions, onReady?: (address: Address) => void): Promise<void> {
  const grow = boundHeap();
  const load = { file: options.config, flags: { port: options.port, host: options.host }, env: options.env };
  const reader = await createConfigReader(load);
  const loaded = reader.read();
  if (loaded.generatedKey !== undefined) process.stderr.write(`No key is configured. For this run only: ${loaded.generatedKey}\n`);
  const { file, server } = loaded.config;
  const run = server.workers === 1 ? serveAlone : serveTogether;
  await run({
    load,
    reader,
    loaded,
    ready(log, { host, port }, more = {}) {
      const shown = host.includes(':') ? `[${host}]` : host;
      log.info({ address: `http://${shown}:${port}`, port, config: file, ...more }, 'listening');
      onReady?.({ host, port });
      grow();
    },
  });
}

/** The gateway in this process. What it is made of is loaded only here: with workers, this process needs none of it. */
async function serveAlone({ load, reader, loaded, ready }: Start): Promise<void> {
  const { createApp } = await import('../app.ts');
  const app = await createApp({ load, createLog, reading: { reader, loaded } });
  ready(app.log, app);
  process.on('SIGHUP', () => void app.reload());
  await untilStopped(app.log, () => app.stop({ idleMs: IDLE_MS, lingerMs: 0 }));
}

/** As many gateways as `server.workers` says, each in a process of its own. */
async function serveTogether({ reader, loaded, ready }: Start): Promise<void> {
  const [{ Primary }, { createMetrics }] = await Promise.all([import('../workers/primary.ts'), import('../telemetry/metrics.ts')]);
  const log = createLog(loaded.config.log.level);
  for (const warning of loaded.warnings) log.warn({}, warning);
  const primary = new Primary({ reader, loaded, log, metrics: createMetrics(), now: () => performance.now() });
  ready(log, await primary.start(), { workers: loaded.config.server.workers });
  process.on('SIGHUP', () => void primary.reload('signal'));
  process.on('SIGUSR2', () => void primary.replaceAll());
  const stop = (): Promise<void> => primary.stop();
  await untilStopped(log, stop, () => primary.kill());
}

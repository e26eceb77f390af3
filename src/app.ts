import { costReply } from './accounting/cost-reply.ts';
import { createAdmin } from './admin/admin.ts';
import { budgetRoutes } from './admin/budgets.ts';
import { serveConsole } from './admin/console.ts';
import { consoleDataRoutes } from './admin/console-data.ts';
import { costRoutes } from './admin/costs.ts';
import { debugRoutes } from './admin/debug-route.ts';
import { keyRoutes } from './admin/keys.ts';
import { operationRoutes } from './admin/operations.ts';
import { sessionRoutes } from './admin/sessions.ts';
import { shadowRoutes } from './admin/shadow-report.ts';
import { traceRoutes } from './admin/traces.ts';
import { dryRunOf } from './app/dry-run.ts';
import { createHouse, type House, systemEnvironment } from './app/house.ts';
import { startHousekeeping } from './app/housekeeping.ts';
import { lintConfig } from './app/lint-config.ts';
import { createConfigReader } from './app/read-config.ts';
import type { Registries } from './app/registries.ts';
import { TraceSink } from './app/trace-sink.ts';
import type { LoadOptions } from './config/load.ts';
import { createReloader, type ReloadResult } from './config/reload.ts';
import { parseRunTimeKey } from './config/run-time-key.ts';
import type { Config } from './contracts/config.ts';
import { HermesError } from './contracts/errors.ts';
import type { Log, Metrics } from './contracts/telemetry.ts';
import { Admission } from './ingress/admission.ts';
import type { Gateway } from './ingress/gateway.ts';
import { type Listener, listen } from './ingress/listener.ts';
import { LoopDelay } from './ingress/loop-delay.ts';
import { createPassThrough } from './ingress/pass-through.ts';
import { createRouter } from './ingress/router.ts';
import { createMetrics } from './telemetry/metrics.ts';
import { createTraceExporter } from './telemetry/otlp-exporter.ts';
import { Roster } from './wire/roster.ts';

export interface AppOptions {
  load: LoadOptions;
  createLog(level: string): Log;
  metrics?: Metrics;
}
export interface App {
  readonly host: string;
  readonly port: number;
  readonly log: Log;
  readonly config: () => Config;
  /** Made for this run because no key is configured. */
  readonly generatedKey: string | undefined;
  /** Validated first, swapped in whole, or refused; the log says why. */
  reload(): Promise<ReloadResult>;
  /** Finishes what is in flight, flushes, closes. */
  stop(): Promise<void>;
}

/** Configuration in, running gateway out. Rejects with what stands in the way (ConfigError, PluginLoadError, a taken address). */
export async function createApp({ load, createLog, metrics = createMetrics() }: AppOptions): Promise<App> {
  const { registries, read } = await createConfigReader(load);
  const loaded = read();
  const log = createLog(loaded.config.log.level);
  for (const warning of loaded.warnings) log.warn({}, warning);
  const house = await createHouse({ config: loaded.config, log, metrics, environment: systemEnvironment }, registries);
  const state = { draining: false };
  const exporter = createTraceExporter({ endpoint: () => house.generation().config.trace.otlp_endpoint, log, metrics });
  const keepDays = (): number => house.generation().config.trace.keep_days;
  const traces = new TraceSink({ cold: house.cold, log, metrics, environment: systemEnvironment, keepDays, exported: exporter.add });
  const reloader = createReloader({ current: loaded, load: read, apply: ({ config }) => house.use(config), onReload: tellReload(log, metrics) });
  const loop = new LoopDelay();
  const gateway = createGateway(house, {
    loop,
    log,
    metrics,
    draining: () => state.draining,
    traces,
    matchers: registries.matchers,
    reload: () => reloader.reload('admin'),
  });
  const passThrough = createPassThrough(gateway);
  gateway.proxy = passThrough.serve;
  let listener: Listener;
  try {
    await house.budgets.start(() => house.generation().config);
    listener = await listen(loaded.config, { request: createRouter(gateway), upgrade: passThrough.upgrade });
  } catch (thrown) {
    await house.close();
    throw thrown;
  }
  reloader.watch();
  const housekeeping = startHousekeeping(house, log);
  return {
    host: listener.host,
    port: listener.port,
    log,
    config: () => house.generation().config,
    generatedKey: loaded.generatedKey,
    reload: () => reloader.reload('signal'),
    async stop() {
      const { server } = house.generation().config;
      state.draining = true;
      reloader.close();
      housekeeping.stop();
      if (server.drain_delay_ms > 0) await new Promise((resolve) => setTimeout(resolve, server.drain_delay_ms));
      await listener.close(server.drain_timeout_ms, () => {
        for (const exchange of gateway.inFlight.list()) exchange.cancel(new HermesError('shutting_down', 'The gateway is shutting down; try again.'));
      });
      passThrough.close();
      loop.close();
      await Promise.all([traces.close(), exporter.close()]);
      await house.close();
    },
  };
}

type MutableGateway = { -readonly [K in keyof Gateway]: Gateway[K] };

function createGateway(
  house: House,
  parts: {
    loop: LoopDelay;
    log: Log;
    metrics: Metrics;
    draining: () => boolean;
    traces: TraceSink;
    matchers: Registries['matchers'];
    reload: () => Promise<ReloadResult>;
  },
): MutableGateway {
  const { rooms, doors, environment, recorder, cold } = house;
  const { log, draining, traces, reload } = parts;
  const inFlight: Gateway['inFlight'] = new Roster();
  const metrics = withPresent(parts.metrics, inFlight, house);
  return {
    generation: house.generation,
    doors,
    rooms,
    log,
    metrics,
    environment,
    draining,
    inFlight,
    admission: new Admission({ metrics, loop: parts.loop, maxDelayMs: () => house.generation().config.server.max_event_loop_delay_ms }),
    notReady: async () => ((await cold.healthy()) ? undefined : 'the session store does not answer'),
    admin: createAdmin([
      ...traceRoutes(traces),
      ...debugRoutes(dryRunOf(house)),
      ...shadowRoutes(rooms.shadow),
      ...sessionRoutes({ cold, environment, forget: rooms.sessions.forget }),
      ...keyRoutes({ book: house.keys, parse: parseRunTimeKey, configured: () => house.generation().config.auth.keys }),
      ...costRoutes({ costs: (query) => costReply(cold, query, house.generation().config.cost.timezone, environment.now()) }),
      ...budgetRoutes({ views: () => house.budgets.views(house.generation().config), lift: (id) => house.budgets.lift(id, house.generation().config) }),
      ...consoleDataRoutes({
        config: () => house.generation().config,
        metrics,
        lint: () => lintConfig(house.generation().config, parts.matchers, rooms.access.allows),
        statistics: rooms.routing.statistics,
        tools: (config) => rooms.tools.list(config),
      }),
      ...operationRoutes({ config: () => house.generation().config, upstream: rooms.upstream, plugins: () => house.generation().plugins, reload }),
    ]),
    console: serveConsole,
    proxy: () => Promise.reject(new Error('the pass-through is not set up')),
    ended(ending) {
      recorder.ended(ending.exchange?.config ?? house.generation().config, ending);
      traces.add(ending);
    },
    looked: (ending) => recorder.looked(house.generation().config, ending),
  };
}

/** What is true at this moment is read when somebody asks: requests in flight, breakers whose time is over, the default's share. */
function withPresent(metrics: Metrics, inFlight: Gateway['inFlight'], { rooms, generation }: House): Metrics {
  const gauge = metrics.gauge('hermes_requests_in_flight', 'Chat requests whose answer is not over.');
  return {
    ...metrics,
    text(format) {
      gauge.set({}, inFlight.size);
      rooms.upstream.states(generation().config);
      rooms.routing.statistics(generation().config);
      return metrics.text(format);
    },
  };
}

/** The log and the metric of every reload. */
function tellReload(log: Log, metrics: Metrics): (result: ReloadResult) => void {
  const reloads = metrics.counter('hermes_config_reloads_total', 'Configurations taken or refused while running.', ['outcome']);
  return ({ outcome, cause, warnings, mistakes }) => {
    for (const warning of warnings) log.warn({}, warning);
    if (outcome === 'ok') log.info({ cause }, 'configuration reloaded');
    else log.error({ cause, mistakes }, 'configuration refused, the old one stays');
    // Last: whoever sees the count finds the reason in the log.
    reloads.inc({ outcome });
  };
}

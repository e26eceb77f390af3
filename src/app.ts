import { costReply } from './accounting/cost-reply.ts';
import { createAdmin } from './admin/admin.ts';
import { budgetRoutes } from './admin/budgets.ts';
import { serveConsole } from './admin/console.ts';
import { consoleDataRoutes } from './admin/console-data.ts';
import { costRoutes } from './admin/costs.ts';
import { debugRoutes } from './admin/debug-route.ts';
import { keyRoutes } from './admin/keys.ts';
import { operationRoutes } from './admin/operations.ts';
import type { AdminRoute } from './admin/route.ts';
import { sessionRoutes } from './admin/sessions.ts';
import { shadowRoutes } from './admin/shadow-report.ts';
import { traceRoutes } from './admin/traces.ts';
import { dryRunOf } from './app/dry-run.ts';
import { createHouse, type House, systemEnvironment } from './app/house.ts';
import { startHousekeeping } from './app/housekeeping.ts';
import { lintConfig } from './app/lint-config.ts';
import { nobodyElse, type Peers } from './app/peers.ts';
import { type ConfigReader, createConfigReader } from './app/read-config.ts';
import type { Registries } from './app/registries.ts';
import { tellReload } from './app/tell-reload.ts';
import { TraceSink } from './app/trace-sink.ts';
import { createViews, type Views } from './app/views.ts';
import type { LoadedConfig, LoadOptions } from './config/load.ts';
import { createReloader, type ReloadResult } from './config/reload.ts';
import { idleGrantsOf, parseRunTimeKey } from './config/run-time-key.ts';
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
import { createAgents } from './upstream/proxy-agents.ts';
import { Roster } from './wire/roster.ts';

export interface AppOptions {
  load: LoadOptions;
  createLog(level: string): Log;
  metrics?: Metrics;
  /** What was read already. */
  reading?: { reader: ConfigReader; loaded: LoadedConfig };
  /** Given to a worker among others: who watches the files and tells of reloads is not this process then. */
  peers?: Peers;
}
/** Milliseconds; none by default. */
export interface StopOptions {
  /** How long connections that say nothing are kept for a last answer. */
  idleMs: number;
  /** How long it goes on listening, so that other workers have closed before it. */
  lingerMs: number;
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
  stop(options?: StopOptions): Promise<void>;
}

/** Configuration in, running gateway out. Rejects with what stands in the way (ConfigError, PluginLoadError, a taken address). */
export async function createApp({ load, createLog, metrics = createMetrics(), reading, peers }: AppOptions): Promise<App> {
  const reader = reading?.reader ?? (await createConfigReader(load));
  const loaded = reading?.loaded ?? reader.read();
  const log = createLog(loaded.config.log.level);
  if (peers === undefined) for (const warning of loaded.warnings) log.warn({}, warning);
  const house = await createHouse({ loaded, log, metrics, environment: systemEnvironment }, reader.registries);
  const state = { draining: false, closing: false };
  const agents = createAgents(loaded.config.proxy);
  const exporter = createTraceExporter({ endpoint: () => house.generation().config.trace.otlp_endpoint, agent: agents.proxied, log, metrics });
  const keepDays = (): number => house.generation().config.trace.keep_days;
  const traces = new TraceSink({ cold: house.cold, log, metrics, environment: systemEnvironment, keepDays, exported: exporter.add });
  const onReload = peers ? () => undefined : tellReload(log, metrics);
  const reloader = createReloader({ current: loaded, load: reader.read, apply: house.use, onReload });
  const loop = new LoopDelay();
  const draining = (): boolean => state.draining;
  const closing = (): boolean => state.closing;
  const gateway = createGateway(house, {
    loop,
    log,
    metrics,
    draining,
    closing,
    traces,
    matchers: reader.registries.matchers,
    peers,
    reload: () => reloader.reload('admin'),
  });
  const passThrough = createPassThrough(gateway, agents);
  gateway.proxy = passThrough.serve;
  let listener: Listener;
  try {
    await house.budgets.start(() => house.generation().config);
    listener = await listen(loaded.config, { request: createRouter(gateway), upgrade: passThrough.upgrade });
  } catch (thrown) {
    await house.close();
    throw thrown;
  }
  if (peers === undefined) reloader.watch();
  const housekeeping = startHousekeeping(house, log);
  return {
    host: listener.host,
    port: listener.port,
    log,
    config: () => house.generation().config,
    generatedKey: loaded.generatedKey,
    reload: () => reloader.reload('signal'),
    async stop({ idleMs, lingerMs } = { idleMs: 0, lingerMs: 0 }) {
      const { server } = house.generation().config;
      state.draining = true;
      reloader.close();
      housekeeping.stop();
      if (server.drain_delay_ms > 0) await new Promise((resolve) => setTimeout(resolve, server.drain_delay_ms));
      const cut = (): void => {
        for (const exchange of gateway.inFlight.list()) exchange.cancel(new HermesError('shutting_down', 'The gateway is shutting down; try again.'));
      };
      const closed = (): void => {
        state.closing = true;
      };
      await listener.close({ timeoutMs: server.drain_timeout_ms, idleMs, lingerMs, cut, closed });
      loop.close();
      await Promise.all([traces.close(), exporter.close()]);
      agents.close();
      await house.close();
    },
  };
}

type MutableGateway = { -readonly [K in keyof Gateway]: Gateway[K] };

interface GatewayParts {
  loop: LoopDelay;
  log: Log;
  metrics: Metrics;
  draining: () => boolean;
  closing: () => boolean;
  traces: TraceSink;
  matchers: Registries['matchers'];
  peers: Peers | undefined;
  /** Of this process alone. */
  reload: () => Promise<ReloadResult>;
}

function createGateway(house: House, parts: GatewayParts): MutableGateway {
  const { rooms, environment, recorder, cold } = house;
  const { log, draining, closing, traces } = parts;
  const config = (): Config => house.generation().config;
  const inFlight: Gateway['inFlight'] = new Roster();
  const own = withPresent(parts.metrics, inFlight, house);
  const peers = parts.peers ?? nobodyElse({ metrics: own.text, reload: parts.reload });
  const metrics = { ...own, text: peers.metrics };
  const views = createViews({ rooms, config, traces, peers, metrics: own.text });
  return {
    generation: house.generation,
    doors: house.doors,
    rooms,
    log,
    metrics,
    environment,
    draining,
    closing,
    inFlight,
    admission: new Admission({ metrics, loop: parts.loop, maxDelayMs: () => config().server.max_event_loop_delay_ms }),
    notReady: async () => ((await cold.healthy()) ? undefined : 'the session store does not answer'),
    admin: createAdmin(adminRoutes(house, { config, views, metrics, matchers: parts.matchers, reload: peers.reload })),
    console: serveConsole,
    proxy: () => Promise.reject(new Error('the pass-through is not set up')),
    ended(ending) {
      recorder.ended(ending.exchange?.config ?? config(), ending);
      traces.add(ending);
    },
    looked: (ending) => recorder.looked(config(), ending),
  };
}

interface AdminParts {
  config: () => Config;
  views: Views;
  metrics: Metrics;
  matchers: Registries['matchers'];
  reload: () => Promise<ReloadResult>;
}

function adminRoutes(house: House, { config, views, metrics, matchers, reload }: AdminParts): AdminRoute[] {
  const { rooms, environment, cold } = house;
  return [
    ...traceRoutes(views.traces),
    ...debugRoutes(dryRunOf(house)),
    ...shadowRoutes(rooms.shadow),
    ...sessionRoutes({ cold, environment, forget: rooms.sessions.forget }),
    ...keyRoutes({
      book: house.keys,
      parse: parseRunTimeKey,
      configured: () => config().auth.keys,
      idle: (key) =>
        idleGrantsOf(
          key,
          config(),
          rooms.tools.list(config()).map(({ id }) => id),
        ),
    }),
    ...costRoutes({ costs: (query) => costReply(cold, query, config().cost.timezone, environment.now()) }),
    ...budgetRoutes({ views: () => house.budgets.views(config()), lift: (id) => house.budgets.lift(id, config()) }),
    ...consoleDataRoutes({
      config,
      metrics,
      lint: () => lintConfig(config(), matchers, rooms.access.allows),
      statistics: views.statistics,
      tools: (current) => rooms.tools.list(current),
    }),
    ...operationRoutes({ upstreams: views.upstreams, switchUpstream: views.switchUpstream, plugins: () => house.generation().plugins, reload }),
  ];
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

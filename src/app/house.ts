import { setTimeout as sleep } from 'node:timers/promises';
import { createAccessRoom } from '../access/access-room.ts';
import { RunTimeKeys } from '../access/run-time-keys.ts';
import { createAccountingRoom } from '../accounting/accounting-room.ts';
import { Budgets } from '../accounting/budgets.ts';
import { Ledger, withBooks } from '../accounting/ledger.ts';
import { createScheduleRoom } from '../accounting/schedule-room.ts';
import { createCacheRoom } from '../cache/cache-room.ts';
import type { LoadedConfig } from '../config/load.ts';
import { createContextRoom } from '../context/context-room.ts';
import type { ColdStore } from '../contracts/cold-store.ts';
import type { Door } from '../contracts/door.ts';
import type { Exchange } from '../contracts/exchange.ts';
import type { HotStore } from '../contracts/hot-store.ts';
import type { Provider } from '../contracts/provider.ts';
import type { Rooms } from '../contracts/rooms.ts';
import type { Environment, Log, Metrics } from '../contracts/telemetry.ts';
import { createGuardsRoom } from '../guards/guards-room.ts';
import { createIdempotencyRoom } from '../idempotency/idempotency-room.ts';
import { createLimitsRoom } from '../limits/limits-room.ts';
import { createMemoryBuckets } from '../limits/memory-buckets.ts';
import { createSharedBuckets } from '../limits/shared-buckets.ts';
import { rawAnswer } from '../pipeline/answer.ts';
import type { Terminal } from '../pipeline/compose.ts';
import type { Generation } from '../pipeline/generation.ts';
import { type LoadedPlugin, loadPlugins } from '../pipeline/load-plugins.ts';
import { createRoutingRoom } from '../routing/routing-room.ts';
import { createWordFinder } from '../routing/word-finder.ts';
import { createSessionsRoom } from '../sessions/sessions-room.ts';
import { createShadowRoom } from '../shadow/shadow-room.ts';
import { Recorder, toServiceLabel } from '../telemetry/recorder.ts';
import { createToolsRoom } from '../tools/tools-room.ts';
import { missingAbility } from '../upstream/capabilities.ts';
import { createClient, createDispatcher } from '../upstream/client.ts';
import { estimateInputTokens } from '../upstream/estimate.ts';
import { fetchJson } from '../upstream/fetch-json.ts';
import type { PostInit } from '../upstream/post.ts';
import { postWebhook } from '../upstream/post-webhook.ts';
import { createSend } from '../upstream/send.ts';
import { createUpstreamRoom } from '../upstream/upstream-room.ts';
import { Generations } from './generations.ts';
import { createRandomUuid } from './random-uuid.ts';
import { loadRegistries, type Registries } from './registries.ts';
import { toSteady } from './steady-clock.ts';
import { openCold, openHot } from './stores.ts';

export interface HouseOptions {
  loaded: LoadedConfig;
  log: Log;
  metrics: Metrics;
  environment?: Environment;
}

/** Everything but the door: rooms, stores, registries and the generation in use. */
export interface House {
  readonly rooms: Rooms;
  readonly hot: HotStore;
  readonly cold: ColdStore;
  /** Keys beside those of the configuration. */
  readonly keys: RunTimeKeys;
  readonly doors: ReadonlyMap<string, Door>;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly recorder: Recorder;
  readonly budgets: Budgets;
  readonly plugins: readonly LoadedPlugin[];
  readonly environment: Environment;
  generation(): Generation;
  /** Swaps a validated configuration in; rejects, and changes nothing, when a plugin does not take it. */
  use(loaded: LoadedConfig): Promise<void>;
  close(): Promise<void>;
}

const SHADOW_GRACE_MS = 2000;

export const systemEnvironment: Environment = { now: () => Date.now(), uuid: createRandomUuid(), random: () => Math.random() };

/** Puts the parts together and opens the stores. Rejects with what stands in the way of a start. */
export async function createHouse(options: HouseOptions, registries?: Registries): Promise<House> {
  const { loaded, log, metrics, environment = systemEnvironment } = options;
  const { config } = loaded;
  const known = registries ?? (await loadRegistries());
  const { providers, matchers, doors } = known;
  const plugins = await loadPlugins(config.pipeline.plugins_dir);
  for (const { plugin, replaces, file } of plugins) if (replaces) log.warn({ plugin: plugin.name, file }, "a file takes the place of hermes' own plugin");
  const parts = { log, metrics, environment };
  // A clock that is handed in is steady as it is.
  const steady = environment === systemEnvironment ? toSteady(environment) : environment;
  const [hot, stored] = await Promise.all([openHot(config, parts), openCold(config, parts)]);
  const ledger = new Ledger({ cold: stored, log, environment });
  const cold = withBooks(stored, ledger);
  const recorder = new Recorder(log, metrics);
  const deps = { hot, cold, log, metrics, environment };
  const dispatcher = createDispatcher(config.proxy ? { proxy: config.proxy } : {});
  const outside = {
    fetchJson: (url: string, init: PostInit, timeoutMs: number) => fetchJson(url, { ...init, dispatcher }, timeoutMs),
    post: (url: string, init: PostInit, timeoutMs: number) => postWebhook(url, { ...init, dispatcher }, timeoutMs),
  };
  const accounting = createAccountingRoom();
  accounting.onCall((call) => recorder.called(generations.current().config, call));
  accounting.onCall((call, { cost }) => ledger.add(call, cost.timezone));
  accounting.onSaved((answer, { cost }) => ledger.addSaved(answer, cost.timezone));
  const keys = new RunTimeKeys(deps);
  const access = createAccessRoom({ ...deps, runTimeKeys: keys });
  const budgets = new Budgets({ ...deps, cold: stored, ledger, allows: access.allows, post: outside.post });
  accounting.onCall((call, inUse) => budgets.heard(call, inUse));
  const context = createContextRoom(deps);
  const guards = createGuardsRoom({ ...deps, fetchJson: outside.fetchJson, countMessage: context.countMessage, createWordFinder });
  const routing = createRoutingRoom({ ...deps, matchers, allows: access.allows, fetchJson: outside.fetchJson, veil: guards.veil });
  const client = createClient({ dispatcher });
  const send = createSend({ client, provider: (name) => providers.get(name), environment, books: accounting, rawAnswer });
  const tools = createToolsRoom({ ...deps, allows: access.allows, dispatcher });
  const shadow = createShadowRoom({ ...deps, routing, functions: (config, names) => tools.functions(config, names), redact: guards.redact });
  const rooms: Rooms = {
    access,
    accounting,
    cache: createCacheRoom({
      ...deps,
      offeredTools: (exchange) => tools.names(exchange).offered,
      embed: routing.embed,
      found: guards.found,
      saved: accounting.saved,
      rawAnswer,
    }),
    context,
    guards,
    idempotency: createIdempotencyRoom(deps),
    limits: createLimitsRoom({ buckets: createSharedBuckets(hot, createMemoryBuckets(steady)), metrics, serviceLabel: toServiceLabel }),
    routing,
    schedule: createScheduleRoom({
      allows: access.allows,
      missingAbility,
      offersTools: (exchange, route) => tools.names({ ...subjectOf(exchange), route }).offered.length > 0,
      estimateTokens: estimateInputTokens,
      crossedFor: (spender, inUse) => budgets.crossedFor(spender, inUse),
      environment,
    }),
    sessions: createSessionsRoom({
      ...deps,
      context,
      kept: (form) => doors.get(form)?.kept,
    }),
    shadow,
    tools,
    upstream: createUpstreamRoom({ send, environment: steady, metrics, log, hot: hot.shared ? hot : undefined }),
  };
  // The recalled history is owed to the token limits once something is sent.
  const terminal: Terminal = (exchange) => {
    exchange.reservation?.topUp(exchange.session?.historyTokens ?? 0);
    if (exchange.attempt) accounting.checkPriced(exchange.config, exchange.attempt);
    return rooms.upstream.send(exchange);
  };
  const generations = new Generations({ rooms, registries: known, plugins, terminal, log, metrics });
  await generations.use(loaded);
  tools.use(config);
  return {
    rooms,
    hot,
    cold,
    keys,
    doors,
    providers,
    recorder,
    budgets,
    plugins,
    environment,
    generation: generations.current,
    async use(next) {
      await generations.use(next);
      tools.use(next.config);
    },
    async close() {
      await rooms.sessions.close();
      // The shadow's own work may take minutes; the books must not wait for it.
      await Promise.race([shadow.idle(), sleep(SHADOW_GRACE_MS, undefined, { ref: false })]);
      generations.retire();
      await Promise.allSettled([context.close(), tools.close()]);
      await Promise.all([ledger.close(), budgets.close()]);
      // What the budgets still had to tell went by it.
      await client.close();
      await hot.close();
      await cold.close();
    },
  };
}

/** What a dry run of the tools looks at. */
function subjectOf({ config, ask, request, caller, principal }: Exchange): Pick<Exchange, 'config' | 'ask' | 'request' | 'caller' | 'principal'> {
  return { config, ask, request, caller, principal };
}

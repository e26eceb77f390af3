import { z } from 'zod';
import type { Config, ScheduleConfig, ToolSettings } from '../contracts/config.ts';
import { auth, limits } from './schema-access.ts';
import { cache, guards, toolLoopGuard } from './schema-guards.ts';
import { models, providers } from './schema-models.ts';
import { cost, embedding, rollout, routeRules, routing, shadow } from './schema-routing.ts';
import { log, metrics, passthrough, pipeline, plugins, server, trace } from './schema-server.ts';
import { idempotency, redis, session, tools, trim } from './schema-state.ts';
import { text, whole } from './values.ts';

/** The configuration file. Every field says its unit and its effect; defaults are here. The JSON Schema and `docs/configuration.md` are made from it. */
export const schema = z.strictObject({
  $schema: z.string().optional().describe('For editors; hermes does not read it.'),
  server,
  auth,
  limits,
  providers,
  models,
  default_model: text().optional().describe('Model (id) that serves what no rule takes. Default: the first model, with a warning.'),
  route_rules: routeRules,
  routing,
  embedding,
  session,
  trim,
  tools,
  tools_max_rounds: whole(1, 100).default(8).describe('Rounds of tool calls in one request; then the model is asked once more without tools.'),
  tool_loop_guard: toolLoopGuard,
  idempotency,
  cache,
  guards,
  cost,
  shadow,
  rollout,
  trace,
  metrics,
  passthrough,
  pipeline,
  plugins,
  redis,
  log,
});
export type ConfigFile = z.output<typeof schema>;
export type ModelFile = ConfigFile['models'][number];
export type ProviderFile = ConfigFile['providers'][string];
export type UpstreamFile = NonNullable<NonNullable<ModelFile['failover']>['upstreams']>[number];

/** Compile-time: what the schema gives is what the contract promises, block by block; `load.ts` fills in the rest. */
type Fits<Given extends Promised, Promised> = Given;
type _SchemaFitsContract = [
  Fits<Omit<ConfigFile['server'], 'workers'>, Omit<Config['server'], 'workers'>>,
  Fits<ConfigFile['limits'], Config['limits']>,
  Fits<ConfigFile['route_rules'], Config['route_rules']>,
  Fits<ConfigFile['trim'], Config['trim']>,
  Fits<ConfigFile['tools'][number], ToolSettings>,
  Fits<ConfigFile['idempotency'], Config['idempotency']>,
  Fits<ConfigFile['cache'], Config['cache']>,
  Fits<ConfigFile['guards'], Config['guards']>,
  Fits<ConfigFile['tool_loop_guard'], Config['tool_loop_guard']>,
  Fits<ConfigFile['cost']['schedule'][number], ScheduleConfig>,
  Fits<ConfigFile['cost']['budgets'], Config['cost']['budgets']>,
  Fits<ConfigFile['trace'], Config['trace']>,
  Fits<ConfigFile['metrics'], Config['metrics']>,
  Fits<ConfigFile['plugins'], Config['plugins']>,
  Fits<ConfigFile['redis'], Config['redis']>,
  Fits<ConfigFile['log'], Config['log']>,
  Fits<ConfigFile['embedding'], Config['embedding']>,
  Fits<Omit<ConfigFile['session'], 'storage'>, Omit<Config['session'], 'storage'>>,
];

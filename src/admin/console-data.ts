import type { Config } from '../contracts/config.ts';
import type { ToolView } from '../contracts/rooms.ts';
import type { RouteStatistics } from '../contracts/routing.ts';
import type { Metrics } from '../contracts/telemetry.ts';
import { type AdminRoute, pageOf } from './route.ts';

export interface ConsoleDataDeps {
  config(): Config;
  metrics: Pick<Metrics, 'text' | 'contentType'>;
  /** What is to be said about the rules as the file has them. */
  lint(): readonly object[];
  /** What the rules have decided so far. */
  statistics(): Promise<RouteStatistics>;
  /** All, those of MCP servers too. */
  tools(config: Config): ToolView[];
}

/** What only the console asks for: the rules with their lint, the tools, and the metrics for an admin key where they need a token of their own. */
export function consoleDataRoutes({ config, metrics, lint, statistics, tools }: ConsoleDataDeps): AdminRoute[] {
  return [
    { method: 'GET', pattern: '/admin/metrics', handle: async () => ({ contentType: metrics.contentType, body: await metrics.text() }) },
    {
      method: 'GET',
      pattern: '/admin/routes',
      async handle() {
        const { route_rules, registry } = config();
        return { body: { rules: route_rules, default_model: registry.defaultModel, lint: lint(), statistics: await statistics() } };
      },
    },
    {
      method: 'GET',
      pattern: '/admin/tools',
      handle: ({ query }) => ({ body: pageOf(tools(config()), query) }),
    },
  ];
}

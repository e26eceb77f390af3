import type { Command } from 'commander';
import { type DebugRoute, debugRoute } from '../admin/debug-route.ts';
import { dryRunOf } from '../app/dry-run.ts';
import { createHouse } from '../app/house.ts';
import { createConfigReader } from '../app/read-config.ts';
import { withoutStores } from '../app/without-stores.ts';
import { configFile, processEnvironment } from '../config/load.ts';
import { parseRouteTests, runRouteTests, untestedRules } from '../routing/route-tests.ts';
import { createLog } from '../telemetry/log.ts';
import { createMetrics } from '../telemetry/metrics.ts';
import { isRecord } from '../wire/json.ts';
import { CommandFailed } from './command-failed.ts';
import { type Added, lintFile, readText } from './lint-file.ts';
import { setUpPlugins } from './quiet-house.ts';
import { registerMineCommand } from './route-mine.ts';
import { ANYBODY, withRules } from './route-offline.ts';
import { printDebug, printFindings, printTests } from './route-print.ts';
import { registerReplayCommand } from './route-replay.ts';
import { askGateway, NoGateway } from './running-gateway.ts';

const CONFIG = ['--config <file>', 'configuration file (default: HERMES_CONFIG, else config/hermes.yaml)'] as const;

interface DebugOptions {
  config?: string;
  url?: string;
  session?: string;
  user?: string;
  userLevel?: string;
  service?: string;
  asKey?: string;
  json?: true;
}

export function registerRouteCommands(program: Command): void {
  const route = program.command('route').description('See, check and test the routing rules.');
  route
    .command('debug <text>')
    .description('What would happen to this message: by the configuration file, or by a running gateway (--url).')
    .option(...CONFIG)
    .option('--url <url>', 'ask the gateway that runs there')
    .option('--session <id>', 'with the history of this session')
    .option('--user <user>', 'of this user')
    .option('--user-level <level>', 'with this user_level')
    .option('--service <service>', 'with this service_type')
    .option('--as-key <id>', 'with the rights of this key of auth.keys')
    .option('--json', 'for programs')
    .action(async (text: string, options: DebugOptions) => {
      const body = debugBody(text, options);
      const answer = await debug(body, options);
      process.stdout.write(options.json ? `${JSON.stringify(answer, null, 2)}\n` : printDebug(answer, coloured()));
    });
  route
    .command('lint')
    .description('Rules that can never be reached, are shadowed, or name what does not exist. Errors exit 1.')
    .option(...CONFIG)
    .option('--tests <file>', 'sample questions (default: route_tests.yaml beside the configuration)')
    .option('--strict', 'warnings exit 1, too')
    .action((options: { config?: string; tests?: string; strict?: true }) => lint(options));
  route
    .command('test <file>')
    .description('Ask sample questions; print what hits and what is confused. A question that misses its rule exits 1.')
    .option(...CONFIG)
    .option('--json', 'for programs')
    .action((file: string, options: { config?: string; json?: true }) => test(file, options));
  registerMineCommand(route);
  registerReplayCommand(route);
}

function coloured(): boolean {
  return process.stdout.isTTY === true && !processEnvironment().NO_COLOR;
}

function debugBody(text: string, { session, user, userLevel, service, asKey }: DebugOptions): Record<string, unknown> {
  const fields = { session_id: session, user, user_level: userLevel, service_type: service, as_key: asKey };
  return { message: text, ...Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) };
}

function toDebugRoute(answer: unknown): DebugRoute {
  if (!isRecord(answer) || typeof answer.rule !== 'string') throw new CommandFailed('The gateway answered something that is no dry run.');
  // The same program made it; its shape is the contract of POST /debug/route.
  return answer as object as DebugRoute;
}

/** A session's history is at the gateway that runs by this configuration; where none runs, in its stores. */
async function debug(body: Record<string, unknown>, options: DebugOptions): Promise<DebugRoute> {
  if (options.url === undefined && options.session === undefined) return debugOffline(body, options);
  try {
    return toDebugRoute(await askGateway(options, 'POST', '/debug/route', body));
  } catch (thrown) {
    if (options.url === undefined && thrown instanceof NoGateway) return debugOffline(body, options);
    throw thrown;
  }
}

/** Only a session needs the stores; without one they stay closed, so that it works beside a running gateway. */
async function debugOffline(body: Record<string, unknown>, options: DebugOptions): Promise<DebugRoute> {
  const { registries, read } = await createConfigReader({ file: options.config });
  const loaded = read();
  const house = await createHouse(
    { loaded: options.session === undefined ? withoutStores(loaded) : loaded, log: createLog('error', process.stderr), metrics: createMetrics() },
    registries,
  );
  try {
    return await debugRoute(dryRunOf(house), { config: house.generation().config, headers: {}, principal: ANYBODY }, body);
  } finally {
    await house.close();
  }
}

async function lint(options: { config?: string; tests?: string; strict?: true }): Promise<void> {
  const file = configFile({ file: options.config });
  const findings = lintFile(file, await addedByPlugins(file), options.tests);
  process.stdout.write(printFindings(findings, file, coloured()));
  if (findings.some(({ level }) => level === 'error' || options.strict)) process.exitCode = 1;
}

/** Of a file that cannot be used, only the rules are looked at. */
async function addedByPlugins(file: string): Promise<Added> {
  const { registries, read } = await createConfigReader({ file });
  try {
    const loaded = read();
    await setUpPlugins(loaded, registries);
    return { matchers: registries.matchers, tools: loaded.config.tools.map(({ id }) => id) };
  } catch {
    return { matchers: registries.matchers, tools: [] };
  }
}

async function test(file: string, options: { config?: string; json?: true }): Promise<void> {
  const tests = parseTests(file);
  await withRules({ file: options.config }, async ({ rooms }, config) => {
    // The rules of the file, also for texts that a rollout would give to others.
    const report = await runRouteTests(tests, rooms.routing.compileRules(config, config.route_rules));
    process.stdout.write(options.json ? `${JSON.stringify(report, null, 2)}\n` : printTests(report, untestedRules(config, tests), coloured()));
    if (report.failures.length > 0) process.exitCode = 1;
  });
}

function parseTests(file: string): ReturnType<typeof parseRouteTests> {
  try {
    return parseRouteTests(readText(file));
  } catch (thrown) {
    throw thrown instanceof CommandFailed
      ? thrown
      : new CommandFailed(`${file}: ${thrown instanceof Error ? thrown.message : 'it cannot be read'}`, { cause: thrown });
  }
}

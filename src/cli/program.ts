import { readFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import { ConfigError } from '../config/problems.ts';
import { HermesError } from '../contracts/errors.ts';
import { PluginLoadError } from '../pipeline/load-plugins.ts';
import { CommandFailed } from './command-failed.ts';
import { registerConfigCommands } from './config.ts';
import { registerDemoCommand } from './demo.ts';
import { packageFile } from './package-root.ts';
import { registerPluginsCommand } from './plugins.ts';
import { registerRouteCommands } from './route.ts';
import { registerServeCommand } from './serve.ts';
import { registerShadowCommands } from './shadow.ts';

/** Runs one command line; gives the exit code. */
export async function run(argv: readonly string[]): Promise<number> {
  const program = new Command('hermes')
    .description('The switchboard between your services and your language models.')
    .version(version())
    .exitOverride()
    .showHelpAfterError();
  for (const register of [
    registerServeCommand,
    registerDemoCommand,
    registerConfigCommands,
    registerPluginsCommand,
    registerRouteCommands,
    registerShadowCommands,
  ])
    register(program);
  try {
    await program.parseAsync([...argv]);
    return Number(process.exitCode ?? 0);
  } catch (thrown) {
    return fail(thrown);
  }
}

function fail(thrown: unknown): number {
  if (thrown instanceof CommanderError) return thrown.exitCode;
  const expected = thrown instanceof ConfigError || thrown instanceof PluginLoadError || thrown instanceof CommandFailed || thrown instanceof HermesError;
  const message = expected || !(thrown instanceof Error) ? String((thrown as Error).message ?? thrown) : explain(thrown);
  process.stderr.write(`${message}\n`);
  return 1;
}

function explain(error: Error & { code?: string }): string {
  if (error.code === 'EADDRINUSE') return `${error.message}: another process listens there; choose another with --port.`;
  return error.message;
}

function version(): string {
  return (JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as { version: string }).version;
}

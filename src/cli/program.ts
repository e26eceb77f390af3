import { readFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import { ConfigError, didYouMean } from '../config/problems.ts';
import { HermesError } from '../contracts/errors.ts';
import { PluginLoadError } from '../pipeline/load-plugins.ts';
import { CommandFailed } from './command-failed.ts';
import { packageFile } from './package-root.ts';

type Register = (program: Command) => void;

/** Each command's file is loaded when it is wanted: a start must not wait for all of them. */
const COMMANDS: Readonly<Record<string, () => Promise<Register>>> = {
  serve: async () => (await import('./serve.ts')).registerServeCommand,
  worker: async () => (await import('./worker.ts')).registerWorkerCommand,
  demo: async () => (await import('./demo.ts')).registerDemoCommand,
  config: async () => (await import('./config.ts')).registerConfigCommands,
  plugins: async () => (await import('./plugins.ts')).registerPluginsCommand,
  route: async () => (await import('./route.ts')).registerRouteCommands,
  session: async () => (await import('./session.ts')).registerSessionCommands,
  shadow: async () => (await import('./shadow.ts')).registerShadowCommands,
  import: async () => (await import('./import.ts')).registerImportCommand,
  trace: async () => (await import('./trace.ts')).registerTraceCommands,
  key: async () => (await import('./key.ts')).registerKeyCommands,
  models: async () => (await import('./models.ts')).registerModelsCommands,
  cost: async () => (await import('./cost.ts')).registerCostCommands,
};

/** Runs one command line; gives the exit code. */
export async function run(argv: readonly string[]): Promise<number> {
  const program = new Command('hermes')
    .description('The switchboard between your services and your language models.')
    .version(version())
    .exitOverride()
    .showHelpAfterError();
  const unknown = unknownCommand(argv[2]);
  if (unknown !== undefined) return fail(new CommandFailed(unknown));
  const wanted = argv[2] !== undefined && Object.hasOwn(COMMANDS, argv[2]) ? [argv[2]] : Object.keys(COMMANDS);
  for (const name of wanted) (await COMMANDS[name]?.())?.(program);
  try {
    await program.parseAsync([...argv]);
    return Number(process.exitCode ?? 0);
  } catch (thrown) {
    return fail(thrown);
  }
}

/** Without this it would be told as an argument too many of `serve`, which is what a line without a command runs. */
function unknownCommand(name: string | undefined): string | undefined {
  const known = [...Object.keys(COMMANDS), 'help'];
  if (name === undefined || name.startsWith('-') || known.includes(name)) return undefined;
  return `there is no command ${JSON.stringify(name)}${didYouMean(name, known) || `; known: ${known.join(', ')}`}`;
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

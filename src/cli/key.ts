import { createHash, randomBytes } from 'node:crypto';
import type { Command } from 'commander';
import { stringify } from 'yaml';
import { CommandFailed } from './command-failed.ts';
import { registerKeyStoreCommands } from './key-store.ts';

interface NewKeyOptions {
  service?: string;
  project?: string;
  models?: string;
  tools?: string;
  expires?: string;
  admin?: true;
  json?: true;
}

/** 256 bits: nobody guesses it, so its hash needs no salt and no stretching. */
const KEY_BYTES = 32;

export function registerKeyCommands(program: Command): void {
  const keys = program.command('key').description('API keys.');
  registerKeyStoreCommands(keys);
  keys
    .command('new <id>')
    .description('Make a strong key: shown once, with its SHA-256 and the YAML to paste. Nothing is stored.')
    .option('--service <service>', 'the service that it stands for (default: the id)')
    .option('--project <project>', 'the project whose sessions it sees (default: the service)')
    .option('--models <list>', 'only these models')
    .option('--tools <list>', 'only these server-side tools')
    .option('--expires <date>', 'refused from this date on')
    .option('--admin', 'may use /admin and /debug')
    .option('--json', 'for programs')
    .action((id: string, options: NewKeyOptions) => {
      process.stdout.write(print(makeKey(id, options), options.json === true));
    });
}

interface NewKey {
  key: string;
  entry: Record<string, unknown>;
}

function makeKey(id: string, { service, project, models, tools, expires, admin }: NewKeyOptions): NewKey {
  if (expires !== undefined && Number.isNaN(Date.parse(expires))) throw new CommandFailed('--expires is a date like 2027-01-31.');
  const key = `sk-hermes-${randomBytes(KEY_BYTES).toString('base64url')}`;
  const list = (text: string | undefined): string[] | undefined => text?.split(',').map((name) => name.trim());
  const entry = {
    id,
    sha256: createHash('sha256').update(key).digest('hex'),
    service: service ?? id,
    project,
    admin,
    models: list(models),
    tools: list(tools),
    expires,
  };
  return { key, entry: Object.fromEntries(Object.entries(entry).filter(([, value]) => value !== undefined)) };
}

function print({ key, entry }: NewKey, json: boolean): string {
  if (json) return `${JSON.stringify({ key, ...entry }, null, 2)}\n`;
  const yaml = stringify({ auth: { keys: [entry] } }).trimEnd();
  return [
    `key     ${key}`,
    `sha256  ${String(entry.sha256)}`,
    '',
    'The key is shown this once. To let it in, add to the configuration (to rotate, leave the old entry until nobody uses it):',
    '',
    yaml,
    '',
  ].join('\n');
}

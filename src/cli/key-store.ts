import type { Command } from 'commander';
import { RunTimeKeys } from '../access/run-time-keys.ts';
import { createKeyViews, type KeyViews } from '../admin/keys.ts';
import { idleGrantsOf, parseRunTimeKey } from '../config/run-time-key.ts';
import { isRecord } from '../wire/json.ts';
import { askGateway } from './running-gateway.ts';
import { withCold } from './with-cold.ts';

interface StoreOptions {
  config?: string;
  url?: string;
  json?: true;
}
interface AddOptions extends StoreOptions {
  service?: string;
  services?: string;
  project?: string;
  projects?: string;
  models?: string;
  tools?: string;
  expires?: string;
  admin?: true;
}

/** `key add`, `key list`, `key revoke`: by the store of the configuration, or by a running gateway. Effective on every instance within a second. */
export function registerKeyStoreCommands(key: Command): void {
  const command = (name: string, description: string): Command =>
    key
      .command(name)
      .description(description)
      .option('--config <file>', 'configuration file (default: HERMES_CONFIG, else config/hermes.yaml)')
      .option('--url <url>', 'ask the gateway that runs there; needed for sqlite while it runs')
      .option('--json', 'for programs');
  command('add <id>', 'Add a key without touching the configuration. It is shown this once; the store keeps its hash.')
    .option('--service <service>', 'the service that it stands for (default: the id)')
    .option('--services <list>', 'services that a request may assert')
    .option('--project <project>', 'the project whose sessions it sees (default: the service)')
    .option('--projects <list>', 'projects that a request may choose')
    .option('--models <list>', 'only these models')
    .option('--tools <list>', 'only these server-side tools')
    .option('--expires <date>', 'refused from this date on')
    .option('--admin', 'may use /admin and /debug')
    .action(async (id: string, options: AddOptions) => {
      const added = await withViews(options, (views) => views.add(toBody(id, options), 'command line'));
      const warnings = isRecord(added) && Array.isArray(added.warnings) ? added.warnings : [];
      for (const warning of options.json ? [] : warnings) process.stderr.write(`warning: ${String(warning)}\n`);
      say(
        options.json ? toJson(added) : `key  ${isRecord(added) ? String(added.key) : ''}\n\nIt is shown this once. Revoke it by: hermes-cli key revoke ${id}\n`,
      );
    });
  command('list', 'All keys, those of the configuration too; never the keys themselves.').action(async (options: StoreOptions) => {
    const page = await withViews(options, (views) => views.list());
    say(options.json ? toJson(page) : print(page.data));
  });
  command('revoke <id>', 'Refuse a key that was added at run time.').action(async (id: string, options: StoreOptions) => {
    const revoked = await withViews(options, (views) => views.revoke(id));
    say(options.json ? toJson(revoked) : `revoked ${id}\n`);
  });
}

function toBody(id: string, { service, services, project, projects, models, tools, expires, admin }: AddOptions): object {
  const list = (text: string | undefined): string[] | undefined => text?.split(',').map((name) => name.trim());
  const body = { id, service, services: list(services), project, projects: list(projects), models: list(models), tools: list(tools), expires, admin };
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined));
}

async function withViews<T>(options: StoreOptions, ask: (views: KeyViews) => Promise<T>): Promise<T> {
  if (options.url !== undefined) return ask(remoteViews(options));
  return withCold(options, async ({ config, ...parts }) =>
    ask(
      createKeyViews({
        book: new RunTimeKeys(parts),
        parse: parseRunTimeKey,
        configured: () => config.auth.keys,
        // Plugins may add tools where the gateway runs.
        idle: (key) => idleGrantsOf(key, config, undefined),
      }),
    ),
  );
}

function remoteViews(options: StoreOptions): KeyViews {
  const record = async (method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<Record<string, unknown>> => {
    const answer = await askGateway(options, method, path, body);
    return isRecord(answer) ? answer : {};
  };
  return {
    async list() {
      const { data } = await record('GET', '/admin/keys');
      return { data: Array.isArray(data) ? data.filter(isRecord) : [], next_cursor: null };
    },
    add: (body) => record('POST', '/admin/keys', body),
    revoke: (id) => record('DELETE', `/admin/keys/${encodeURIComponent(id)}`),
  };
}

function say(text: string): void {
  process.stdout.write(text);
}
function toJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

function print(data: readonly object[]): string {
  const rows = data.filter(isRecord).map((key) => {
    const state = key.revoked_at ? `revoked ${String(key.revoked_at)}` : key.expires ? `until ${String(key.expires)}` : 'good';
    return [key.id, key.source, key.service, key.project, key.admin ? 'admin' : '', [key.models].flat().join(', '), state].map(String);
  });
  if (rows.length === 0) return 'no keys\n';
  const widths = [0, 1, 2, 3, 4, 5].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('');
}

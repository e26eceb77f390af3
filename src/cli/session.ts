import { writeFileSync } from 'node:fs';
import type { Command } from 'commander';
import { createSessionViews, type SessionViews } from '../admin/sessions.ts';
import { openHot } from '../app/stores.ts';
import { forgetSession } from '../sessions/forget-session.ts';
import { isRecord } from '../wire/json.ts';
import { CommandFailed } from './command-failed.ts';
import { askGateway } from './running-gateway.ts';
import { withCold } from './with-cold.ts';

interface StoreOptions {
  config?: string;
  url?: string;
}
interface OneOptions extends StoreOptions {
  project: string;
  json?: true;
}

export function registerSessionCommands(program: Command): void {
  const session = program.command('session').description('Stored conversations: by the stores of the configuration, or by a running gateway (--url).');
  const command = (name: string, description: string): Command =>
    session
      .command(name)
      .description(description)
      .option('--config <file>', 'configuration file (default: HERMES_CONFIG, else config/hermes.yaml)')
      .option('--url <url>', 'ask the gateway that runs there; needed for sqlite while it runs');
  const one = (name: string, description: string): Command =>
    command(`${name} <id>`, description).option('--project <project>', 'the project whose session it is', 'default');

  command('list', 'Sessions, newest first.')
    .option('--project <project>', 'only of this project')
    .option('--limit <n>', 'how many', '50')
    .option('--cursor <cursor>', 'go on where the last page ended')
    .option('--json', 'for programs')
    .action(async (options: StoreOptions & { project?: string; limit: string; cursor?: string; json?: true }) => {
      const page = await withViews(options, (views) => views.list({ ...options, limit: Number(options.limit) || 50 }));
      say(options.json ? toJson(page) : printList(page));
    });
  one('show', 'One session: its messages, tokens, calls, models and cost.')
    .option('--json', 'for programs')
    .action(async (id: string, options: OneOptions) => {
      const view = await withViews(options, (views) => views.show({ project: options.project, session: id }));
      say(options.json ? toJson(view) : printSession(view));
    });
  one('export', 'The whole conversation as NDJSON, one message a line.')
    .option('--output <file>', 'a file instead of the standard output')
    .action(async (id: string, options: OneOptions & { output?: string }) => {
      const lines = await withViews(options, (views) => views.export({ project: options.project, session: id }));
      if (options.output === undefined) say(lines);
      else writeFileSync(options.output, lines, { mode: 0o600 });
    });
  one('delete', 'Delete a session, hot and cold. There is no way back.').action(async (id: string, options: OneOptions) => {
    await withViews(options, (views) => views.delete({ project: options.project, session: id }));
    say(`deleted ${options.project} ${id}\n`);
  });
}

/** Asks the stores of the configuration, or a running gateway. */
export async function withViews<T>(options: StoreOptions, ask: (views: SessionViews) => Promise<T>): Promise<T> {
  if (options.url !== undefined) return ask(remoteViews(options));
  return withCold(options, ({ config, cold, log, metrics, environment }) => {
    // Only who deletes needs the hot store.
    const forget = async (project: string, session: string): Promise<boolean> => {
      const hot = await openHot(config, { log, metrics, environment });
      try {
        return await forgetSession({ hot, cold, log }, project, session);
      } finally {
        await hot.close();
      }
    };
    return ask(createSessionViews({ cold, environment, forget }));
  });
}

function remoteViews(options: StoreOptions): SessionViews {
  const record = async (method: 'GET' | 'DELETE', path: string): Promise<Record<string, unknown>> => {
    const answer = await askGateway(options, method, path);
    if (!isRecord(answer)) throw new CommandFailed('The gateway answered something that is no session view.');
    return answer;
  };
  const pathOf = ({ project, session }: { project: string; session: string }, more = ''): string =>
    `/admin/sessions/${encodeURIComponent(session)}${more}?project=${encodeURIComponent(project)}`;
  return {
    async list({ project, limit, cursor }) {
      const query = new URLSearchParams({ limit: String(limit), ...(project ? { project } : {}), ...(cursor ? { cursor } : {}) });
      const { data, next_cursor } = await record('GET', `/admin/sessions?${query}`);
      return { data: records(data), next_cursor: typeof next_cursor === 'string' ? next_cursor : null };
    },
    show: (question) => record('GET', pathOf(question)),
    async export(question) {
      const { data } = await record('GET', `${pathOf(question, '/export')}&format=json`);
      return records(data)
        .map((message) => `${JSON.stringify(message)}\n`)
        .join('');
    },
    delete: (question) => record('DELETE', pathOf(question)),
  };
}

function say(text: string): void {
  process.stdout.write(text);
}
function toJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
function records(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

function printList({ data, next_cursor }: { data: Record<string, unknown>[]; next_cursor: string | null }): string {
  const rows = data.map((row) =>
    [row.updated_at, row.project, row.session_id, `${row.messages} messages`, `${row.tokens} tokens`, [row.models].flat().join(', ')].map(String),
  );
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(0, ...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  if (next_cursor !== null) lines.push(`more: --cursor ${next_cursor}`);
  return lines.length === 0 ? 'no sessions\n' : `${lines.join('\n')}\n`;
}

function printSession(view: Record<string, unknown>): string {
  const head = `${view.project} ${view.session_id}: ${view.total_messages} messages, ${view.tokens} tokens, ${view.calls} calls of ${[view.models].flat().join(', ') || 'no model'}, ${view.cost_usd} USD`;
  const lines = [...records(view.system), ...records(view.messages)].map((message) => {
    const marks = ['partial', 'degraded'].filter((mark) => message[mark] === true).map((mark) => ` [${mark}]`);
    const calls = records(message.tool_calls).map((call) => (isRecord(call.function) ? ` → ${call.function.name}(${call.function.arguments})` : ''));
    const content =
      typeof message.content === 'string' ? message.content : message.content === null || message.content === undefined ? '' : JSON.stringify(message.content);
    return `${message.role}${marks.join('')}: ${content}${calls.join('')}`;
  });
  return `${[head, '', ...lines].join('\n')}\n`;
}

import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { addDays, dayOf } from '../accounting/calendar.ts';
import { costReply } from '../accounting/cost-reply.ts';
import { parseProviderUsage, type UsageLine } from '../accounting/provider-usage.ts';
import { type BookedUsage, verifyUsage } from '../accounting/verify.ts';
import { systemEnvironment } from '../app/house.ts';
import { createConfigReader } from '../app/read-config.ts';
import { openCold } from '../app/stores.ts';
import type { Config } from '../contracts/config.ts';
import { createLog } from '../telemetry/log.ts';
import { createMetrics } from '../telemetry/metrics.ts';
import { isRecord, stringifyJson } from '../wire/json.ts';
import { CommandFailed } from './command-failed.ts';
import { type CostAnswer, type CostRow, printCosts, printVerified } from './cost-print.ts';
import { askGateway, askGatewayText, NoGateway } from './running-gateway.ts';

interface SourceOptions {
  config?: string;
  url?: string;
}
interface ReportOptions extends SourceOptions {
  day?: string;
  from?: string;
  to?: string;
  by: string;
  top?: string;
  shadow?: string;
  format: string;
}

export function registerCostCommands(program: Command): void {
  const cost = program.command('cost').description('What was spent: by the store of the configuration, or by a running gateway (--url).');
  const command = (name: string, description: string): Command =>
    cost
      .command(name)
      .description(description)
      .option('--config <file>', 'configuration file (default: HERMES_CONFIG, else config/hermes.yaml)')
      .option('--url <url>', 'ask the gateway that runs there; needed for sqlite while it runs');
  command('report', 'Tokens and money of a day or a period.')
    .option('--day <day>', 'today, yesterday or a date; a day in cost.timezone (default: today)')
    .option('--from <date>', 'a period instead: from this date or time')
    .option('--to <date>', 'up to this date (with it) or time')
    .option('--by <list>', 'hour, day, service, project, user, session, key, route, model, upstream', 'service')
    .option('--top <n>', 'only the dearest rows')
    .option('--shadow <which>', 'only or with: calls of the shadow are left out otherwise')
    .option('--format <format>', 'table, json or csv', 'table')
    .action((options: ReportOptions) => report(options));
  command('verify <file>', "Compare with a provider's exported usage file (CSV, JSON or NDJSON). A difference exits 1.").action(
    (file: string, options: SourceOptions) => verify(file, options),
  );
}

async function report(options: ReportOptions): Promise<void> {
  const { format } = options;
  if (format !== 'table' && format !== 'json' && format !== 'csv') throw new CommandFailed('--format is table, json or csv.');
  const query = new URLSearchParams();
  for (const name of ['day', 'from', 'to', 'by', 'top', 'shadow'] as const) if (options[name] !== undefined) query.set(name, options[name]);
  await withBooks(options, async (books) => {
    if (format === 'csv') return say(await books.csv(query));
    const answer = await books.json(query);
    if (format === 'json') return say(`${JSON.stringify(JSON.parse(stringifyJson(answer)), null, 2)}\n`);
    say(printCosts(toAnswer(answer), options.from === undefined && options.to === undefined ? await dayBefore(books, toAnswer(answer), query) : undefined));
  });
}

async function dayBefore(books: Books, { from, timezone }: CostAnswer, query: URLSearchParams): Promise<CostAnswer> {
  const before = new URLSearchParams(query);
  before.set('day', addDays(dayOf(Date.parse(from), timezone), -1));
  before.delete('top');
  return toAnswer(await books.json(before));
}

async function verify(file: string, options: SourceOptions): Promise<void> {
  const lines = readUsage(file);
  const days = lines.flatMap(({ day }) => day ?? []).sort();
  const [first, last] = [days[0], days.at(-1)];
  const period = first !== undefined && last !== undefined ? { from: first, to: last } : undefined;
  const query = new URLSearchParams({ by: 'model,upstream', shadow: 'with' });
  query.set('from', `${period?.from ?? '1970-01-01'}T00:00:00Z`);
  if (period) query.set('to', `${addDays(period.to, 1)}T00:00:00Z`);
  await withBooks(options, async (books) => {
    const { rows } = toAnswer(await books.json(query));
    const config = await books.config();
    const verified = verifyUsage(
      lines,
      rows.map((row) => toBooked(row, config)),
    );
    say(printVerified(verified, period));
    if (verified.some(({ agrees }) => !agrees)) process.exitCode = 1;
  });
}

function readUsage(file: string): UsageLine[] {
  try {
    return parseProviderUsage(readFileSync(file, 'utf8'));
  } catch (cause) {
    throw new CommandFailed(`${file}: ${cause instanceof Error ? cause.message : 'it cannot be read'}`, { cause });
  }
}

/** Under the name that the upstream knows the model by. */
function toBooked(row: CostRow, config: Config): BookedUsage {
  const target = config.registry.models.get(String(row.model))?.upstreams.find(({ id }) => id === row.upstream);
  return {
    model: target?.modelName ?? String(row.upstream).replace(/^[^/]*\//, ''),
    provider: target?.provider ?? '',
    calls: row.calls,
    estimatedCalls: row.estimated_calls,
    input: row.input_tokens,
    cached: Number(row.cached_tokens),
    output: row.output_tokens,
  };
}

interface Books {
  config(): Promise<Config>;
  json(query: URLSearchParams): Promise<unknown>;
  csv(query: URLSearchParams): Promise<string>;
}

/** The gateway's when `--url` names one, else the store's; an embedded store that a running gateway holds is asked of that gateway. */
async function withBooks(options: SourceOptions, ask: (books: Books) => Promise<void>): Promise<void> {
  const readConfig = async (): Promise<Config> => (await createConfigReader({ file: options.config })).read().config;
  if (options.url !== undefined) return ask(remoteBooks(options, readConfig));
  const config = await readConfig();
  const parts = { log: createLog('error', process.stderr), metrics: createMetrics(), environment: systemEnvironment };
  let cold: Awaited<ReturnType<typeof openCold>>;
  try {
    cold = await openCold(config, parts);
  } catch (thrown) {
    if (!(thrown instanceof Error) || !thrown.message.includes('in use by another process')) throw thrown;
    try {
      return await ask(remoteBooks(options, async () => config));
    } catch (second) {
      throw second instanceof NoGateway ? new CommandFailed(`A running gateway holds the database. ${second.message}`, { cause: thrown }) : second;
    }
  }
  const { timezone } = config.cost;
  const reply = (query: URLSearchParams) => costReply(cold, query, timezone, systemEnvironment.now());
  try {
    await ask({
      config: async () => config,
      json: async (query) => (await reply(query)).body,
      csv: async (query) => String((await reply(withCsv(query))).body),
    });
  } finally {
    await cold.close();
  }
}

function remoteBooks(options: SourceOptions, config: () => Promise<Config>): Books {
  return {
    config,
    json: (query) => askGateway(options, 'GET', `/admin/costs?${query}`),
    csv: (query) => askGatewayText(options, `/admin/costs?${withCsv(query)}`),
  };
}

function withCsv(query: URLSearchParams): URLSearchParams {
  const csv = new URLSearchParams(query);
  csv.set('format', 'csv');
  return csv;
}

function toAnswer(answer: unknown): CostAnswer {
  if (!isRecord(answer) || !Array.isArray(answer.rows) || !isRecord(answer.total)) throw new CommandFailed('The gateway answered something that is no report.');
  // Sums beyond 2^53 are strings of their digits inside this process.
  return JSON.parse(stringifyJson(answer)) as CostAnswer;
}

function say(text: string): void {
  process.stdout.write(text);
}

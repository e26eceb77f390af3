import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { listTraces, showTrace } from '../admin/traces.ts';
import { systemEnvironment } from '../app/house.ts';
import { createConfigReader } from '../app/read-config.ts';
import { openCold } from '../app/stores.ts';
import { createLog } from '../telemetry/log.ts';
import { createMetrics } from '../telemetry/metrics.ts';
import { isRecord } from '../wire/json.ts';
import { CommandFailed } from './command-failed.ts';
import { askGateway, NoGateway } from './running-gateway.ts';
import { printTrace, printTraceLine, type TraceView } from './trace-print.ts';

interface SourceOptions {
  config?: string;
  url?: string;
}
interface FilterOptions extends SourceOptions {
  limit?: string;
  requestId?: string;
  route?: string;
  status?: string;
  session?: string;
  from?: string;
  to?: string;
  json?: true;
}
interface Page {
  data: TraceView[];
  next_cursor: string | null;
}
interface Traces {
  show(id: string): Promise<TraceView>;
  list(query: URLSearchParams): Promise<Page>;
}

const PAGE = 500;
const TAIL_MS = 1000;

export function registerTraceCommands(program: Command): void {
  const trace = program.command('trace').description('What became of a request, by the x-request-id of its answer: of a running gateway, else of the store.');
  const command = (name: string, description: string): Command =>
    trace
      .command(name)
      .description(description)
      .option('--config <file>', 'configuration file (default: HERMES_CONFIG, else config/hermes.yaml)')
      .option('--url <url>', "the running gateway (default: the configuration's address)");
  const filtered = (name: string, description: string): Command =>
    command(name, description)
      .option('--request-id <id>', 'only of this request id')
      .option('--route <rule>', 'only decided by this rule')
      .option('--status <code>', 'only with this status')
      .option('--session <id>', 'only of this session')
      .option('--from <time>', 'begun at or after (ISO 8601)')
      .option('--to <time>', 'begun before');

  command('show <id>', 'One trace: its steps as a waterfall, its calls, tokens and money.')
    .option('--json', 'for programs')
    .action((id: string, options: SourceOptions & { json?: true }) =>
      withTraces(options, async (traces) => {
        const view = await traces.show(id);
        say(options.json ? `${JSON.stringify(view, null, 2)}\n` : printTrace(view));
      }),
    );
  filtered('list', 'Traces, newest first.')
    .option('--limit <n>', 'how many', '20')
    .option('--json', 'for programs')
    .action((options: FilterOptions) =>
      withTraces(options, async (traces) => {
        const page = await traces.list(toQuery(options));
        if (options.json) return say(`${JSON.stringify(page, null, 2)}\n`);
        say(page.data.length === 0 ? 'no traces\n' : page.data.map(printTraceLine).join(''));
      }),
    );
  filtered('export', 'Every trace that fits, newest first, as NDJSON.')
    .option('--limit <n>', 'at most so many')
    .option('--output <file>', 'a file instead of the standard output')
    .action((options: FilterOptions & { output?: string }) => withTraces(options, (traces) => exportAll(traces, options)));
  filtered('tail', 'Traces as they come, until it is stopped.')
    .option('--json', 'NDJSON')
    .option('--seconds <n>', 'stop by itself')
    .action((options: FilterOptions & { seconds?: string }) => withTraces(options, (traces) => tail(traces, options)));
}

async function exportAll(traces: Traces, options: FilterOptions & { output?: string }): Promise<void> {
  const most = Number(options.limit ?? Number.POSITIVE_INFINITY);
  const query = toQuery(options);
  const lines: string[] = [];
  for (;;) {
    query.set('limit', String(Math.min(PAGE, most - lines.length)));
    const { data, next_cursor } = await traces.list(query);
    for (const view of data) lines.push(`${JSON.stringify(view)}\n`);
    if (next_cursor === null || data.length === 0 || lines.length >= most) break;
    query.set('cursor', next_cursor);
  }
  if (options.output === undefined) say(lines.join(''));
  else writeFileSync(options.output, lines.join(''), { mode: 0o600 });
}

async function tail(traces: Traces, options: FilterOptions & { seconds?: string }): Promise<void> {
  const stop = options.seconds === undefined ? Number.POSITIVE_INFINITY : performance.now() + Number(options.seconds) * 1000;
  const told = new Set<string>();
  const query = toQuery({ from: new Date().toISOString(), ...options, limit: '200' });
  while (performance.now() < stop) {
    const { data } = await traces.list(query);
    for (const view of data.reverse()) {
      if (told.has(view.id)) continue;
      told.add(view.id);
      say(options.json ? `${JSON.stringify(view)}\n` : printTraceLine(view));
    }
    await sleep(Math.min(TAIL_MS, Math.max(0, stop - performance.now())));
  }
}

function toQuery(options: FilterOptions): URLSearchParams {
  const { limit, requestId, route, status, session, from, to } = options;
  const query = new URLSearchParams();
  const given = { limit, request_id: requestId, route, status, session_id: session, from, to };
  for (const [name, value] of Object.entries(given)) if (value !== undefined) query.set(name, value);
  return query;
}

/** A running gateway knows the newest ones; without one the store tells what it has. */
async function withTraces(options: SourceOptions, ask: (traces: Traces) => Promise<void>): Promise<void> {
  try {
    return await ask(remoteTraces(options));
  } catch (thrown) {
    if (!(thrown instanceof NoGateway)) throw thrown;
    if (options.url !== undefined) throw new CommandFailed(thrown.message, { cause: thrown });
  }
  const { config } = (await createConfigReader({ file: options.config })).read();
  const cold = await openCold(config, { log: createLog('error', process.stderr), metrics: createMetrics(), environment: systemEnvironment });
  const source = { get: (id: string) => cold.readTrace(id), list: cold.listTraces.bind(cold) };
  try {
    await ask({ show: async (id) => toView(await showTrace(source, id)), list: async (query) => toPage(await listTraces(source, query)) });
  } finally {
    await cold.close();
  }
}

function remoteTraces(options: SourceOptions): Traces {
  return {
    show: async (id) => toView(await askGateway(options, 'GET', `/admin/traces/${encodeURIComponent(id)}`)),
    list: async (query) => toPage(await askGateway(options, 'GET', `/admin/traces?${query}`)),
  };
}

function toView(answer: unknown): TraceView {
  if (!isRecord(answer) || !Array.isArray(answer.spans)) throw new CommandFailed('The gateway answered something that is no trace.');
  return answer as object as TraceView;
}
function toPage(answer: unknown): Page {
  if (!isRecord(answer) || !Array.isArray(answer.data)) throw new CommandFailed('The gateway answered something that is no list of traces.');
  return { data: answer.data.map(toView), next_cursor: typeof answer.next_cursor === 'string' ? answer.next_cursor : null };
}

function say(text: string): void {
  process.stdout.write(text);
}

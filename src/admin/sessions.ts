import type { ColdSession, ColdStore, LedgerRow, SessionSummary } from '../contracts/cold-store.ts';
import { HermesError } from '../contracts/errors.ts';
import type { Environment } from '../contracts/telemetry.ts';
import { type AdminRoute, limitOf } from './route.ts';

export interface SessionSource {
  cold: ColdStore;
  environment: Environment;
  /** Really deletes, hot and cold. False: there is none. */
  forget(project: string, session: string): Promise<boolean>;
}

/** A view is of the newest messages; an export is of all. */
const SHOWN = 1000;
const ALL = 10_000_000;
/** Before the first hour that any book has. */
const BEGINNING = '1970-01-01T00:00Z';
const HOUR_MS = 3_600_000;

/** `/admin/sessions`: paged, newest first; one of them: looked at, exported, deleted. `?project=` defaults to the asking key's. */
export function sessionRoutes(source: SessionSource): AdminRoute[] {
  const projectOf = (query: URLSearchParams, fallback: string | undefined): string => query.get('project') ?? fallback ?? 'default';
  const show = async (project: string, session: string, limit: number): Promise<Record<string, unknown>> => {
    const state = await source.cold.readSession(project, session, limit);
    if (state === undefined) throw notFound(project);
    return toSessionView(project, session, state, await booksOf(source, project, session));
  };
  return [
    {
      method: 'GET',
      pattern: '/admin/sessions',
      async handle({ query }) {
        const [project, cursor] = [query.get('project'), query.get('cursor')];
        const page = await source.cold.listSessions({ limit: limitOf(query), ...(project ? { project } : {}), ...(cursor ? { cursor } : {}) });
        return { body: { data: page.data.map(toSummaryView), next_cursor: page.nextCursor ?? null } };
      },
    },
    {
      method: 'GET',
      pattern: '/admin/sessions/{id}',
      async handle({ query, exchange }, { id = '' }) {
        return { body: await show(projectOf(query, exchange.caller?.project), id, query.has('limit') ? limitOf(query) : SHOWN) };
      },
    },
    {
      method: 'GET',
      pattern: '/admin/sessions/{id}/export',
      async handle({ query, exchange }, { id = '' }) {
        const project = projectOf(query, exchange.caller?.project);
        const state = await source.cold.readSession(project, id, ALL);
        if (state === undefined) throw notFound(project);
        return { contentType: 'application/x-ndjson', body: toLines(state) };
      },
    },
    {
      method: 'DELETE',
      pattern: '/admin/sessions/{id}',
      async handle({ query, exchange }, { id = '' }) {
        const project = projectOf(query, exchange.caller?.project);
        if (!(await source.forget(project, id))) throw notFound(project);
        return { body: { project, session_id: id, deleted: true } };
      },
    },
  ];
}

function notFound(project: string): HermesError {
  return new HermesError('session_not_found', `The project "${project.slice(0, 128)}" has no session of that id; ?project= names another project.`);
}

/** One line a message, the system's first: the whole conversation as a model was given it. */
function toLines(state: ColdSession): string {
  return [...state.system, ...state.messages].map((message) => `${JSON.stringify(toMessageView(message))}\n`).join('');
}

function toSummaryView(summary: SessionSummary): Record<string, unknown> {
  return {
    project: summary.project,
    session_id: summary.session,
    version: summary.version,
    messages: summary.messages,
    tokens: summary.tokens,
    models: summary.models,
    created_at: new Date(summary.createdAt).toISOString(),
    updated_at: new Date(summary.updatedAt).toISOString(),
  };
}

function toSessionView(project: string, session: string, state: ColdSession, books: LedgerRow[]): Record<string, unknown> {
  const costNanoUsd = books.reduce((total, row) => total + row.cost_nano_usd, 0n);
  const sum = (pick: (row: LedgerRow) => number): number => books.reduce((total, row) => total + pick(row), 0);
  return {
    project,
    session_id: session,
    version: state.version,
    total_messages: state.total,
    tokens: [...state.system, ...state.messages].reduce((total, message) => total + message.tokens, 0),
    system: state.system.map(toMessageView),
    messages: state.messages.map(toMessageView),
    calls: sum((row) => row.calls),
    models: [...new Set(books.map((row) => row.model))],
    input_tokens: sum((row) => row.input_tokens),
    output_tokens: sum((row) => row.output_tokens),
    cost_nano_usd: Number(costNanoUsd),
    cost_usd: Number(costNanoUsd) / 1e9,
  };
}

function toMessageView({ message, tokens, partial, degraded, ...rest }: ColdSession['system'][number] & { sequence?: number }): Record<string, unknown> {
  const { sequence } = rest;
  return {
    ...(sequence === undefined ? {} : { sequence }),
    ...message,
    tokens,
    ...(partial ? { partial: true } : {}),
    ...(degraded ? { degraded: true } : {}),
  };
}

/** What was called for this session, by model. */
async function booksOf({ cold, environment }: SessionSource, project: string, session: string): Promise<LedgerRow[]> {
  const to = `${new Date(environment.now() + HOUR_MS).toISOString().slice(0, 13)}:00Z`;
  const rows = await cold.readLedger({ from: BEGINNING, to, by: ['project', 'session', 'model'], shadow: 'without' });
  return rows.filter((row) => row.project === project && row.session === session);
}

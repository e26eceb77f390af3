import type { AdminRequest } from '../contracts/admin.ts';
import type { ColdSession, ColdStore, LedgerRow, SessionSummary } from '../contracts/cold-store.ts';
import { HermesError } from '../contracts/errors.ts';
import type { Environment } from '../contracts/telemetry.ts';
import { parseJson, stringifyJson } from '../wire/json.ts';
import { type AdminRoute, cursorOf, limitOf } from './route.ts';

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

interface SessionQuestion {
  project: string;
  session: string;
}
/** What `/admin/sessions` and `hermes-cli session` say. Each throws `session_not_found`. */
export interface SessionViews {
  list(query: {
    project?: string | undefined;
    limit: number;
    cursor?: string | undefined;
  }): Promise<{ data: Record<string, unknown>[]; next_cursor: string | null }>;
  show(question: SessionQuestion, limit?: number): Promise<Record<string, unknown>>;
  /** One line a message, the system's first: the whole conversation as a model is given it. */
  export(question: SessionQuestion): Promise<string>;
  delete(question: SessionQuestion): Promise<Record<string, unknown>>;
}

export function createSessionViews(source: SessionSource): SessionViews {
  const { cold } = source;
  const read = async ({ project, session }: SessionQuestion, limit: number): Promise<ColdSession> => {
    const state = await cold.readSession(project, session, limit);
    if (state === undefined) throw notFound(project);
    return state;
  };
  return {
    async list({ project, limit, cursor }) {
      const page = await cold.listSessions({ limit, ...(project ? { project } : {}), ...(cursor ? { cursor } : {}) });
      return { data: page.data.map(toSummaryView), next_cursor: page.nextCursor ?? null };
    },
    async show(question, limit = SHOWN) {
      return toSessionView(question, await read(question, limit), await booksOf(source, question));
    },
    async export(question) {
      const { system, messages } = await read(question, ALL);
      return [...system, ...messages].map((message) => `${stringifyJson(toMessageView(message))}\n`).join('');
    },
    async delete({ project, session }) {
      if (!(await source.forget(project, session))) throw notFound(project);
      return { project, session_id: session, deleted: true };
    },
  };
}

/** `/admin/sessions`: paged, newest first; one of them: looked at, exported as NDJSON, deleted. `?project=` defaults to the asking key's. */
export function sessionRoutes(source: SessionSource): AdminRoute[] {
  const views = createSessionViews(source);
  const about = ({ query, exchange }: AdminRequest, session = ''): SessionQuestion => ({
    project: query.get('project') ?? exchange.caller?.project ?? exchange.principal?.project ?? 'default',
    session,
  });
  return [
    {
      method: 'GET',
      pattern: '/admin/sessions',
      async handle({ query }) {
        const project = query.get('project') || undefined;
        return { body: await views.list({ project, cursor: cursorOf(query), limit: limitOf(query) }) };
      },
    },
    {
      method: 'GET',
      pattern: '/admin/sessions/{id}',
      async handle(request, { id }) {
        return { body: await views.show(about(request, id), request.query.has('limit') ? limitOf(request.query) : undefined) };
      },
    },
    {
      method: 'GET',
      pattern: '/admin/sessions/{id}/export',
      async handle(request, { id }) {
        const lines = await views.export(about(request, id));
        if (request.query.get('format') === 'json')
          return {
            body: {
              data: lines.split('\n').filter(Boolean).map(parseJson),
            },
          };
        return { contentType: 'application/x-ndjson', body: lines };
      },
    },
    {
      method: 'DELETE',
      pattern: '/admin/sessions/{id}',
      async handle(request, { id }) {
        return { body: await views.delete(about(request, id)) };
      },
    },
  ];
}

function notFound(project: string): HermesError {
  return new HermesError('session_not_found', `The project "${project.slice(0, 128)}" has no session of that id; ?project= names another project.`);
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

function toSessionView({ project, session }: SessionQuestion, state: ColdSession, books: LedgerRow[]): Record<string, unknown> {
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
async function booksOf({ cold, environment }: SessionSource, { project, session }: SessionQuestion): Promise<LedgerRow[]> {
  const to = `${new Date(environment.now() + HOUR_MS).toISOString().slice(0, 13)}:00Z`;
  return cold.readLedger({ from: BEGINNING, to, by: ['model'], shadow: 'without', project, session });
}

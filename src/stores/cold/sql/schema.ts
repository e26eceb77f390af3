/**
 * The schema of both engines, as numbered steps: a step that has been released is never changed, only followed by another.
 * Texts that are compared are in byte order (`COLLATE "C"`): cursors and prefix searches walk an index.
 */
export type Dialect = 'sqlite' | 'postgres';

export interface Migration {
  version: number;
  statements: string[];
}

export function migrations(dialect: Dialect): Migration[] {
  const text = dialect === 'sqlite' ? 'TEXT' : 'TEXT COLLATE "C"';
  // Rows of these tables are only reached by their whole key: clustering by it saves SQLite the second tree.
  const clustered = dialect === 'sqlite' ? 'WITHOUT ROWID' : '';
  return [
    { version: 1, statements: [...sessionTables(text, clustered), ...valueTables(text, clustered), ...traceTable(text)] },
    {
      version: 2,
      statements: [
        `ALTER TABLE turns ADD COLUMN run ${text}`,
        'ALTER TABLE turns ADD COLUMN body TEXT',
        'CREATE INDEX turns_by_run ON turns (project, session, run) WHERE run IS NOT NULL',
      ],
    },
    { version: 3, statements: ["CREATE INDEX ledger_by_session ON ledger (session, project) WHERE session <> ''"] },
    { version: 4, statements: ['ALTER TABLE ledger ADD COLUMN saved_tokens BIGINT NOT NULL DEFAULT 0'] },
    {
      version: 5,
      statements: [
        `ALTER TABLE turns ADD COLUMN response_id ${text}`,
        `ALTER TABLE turns ADD COLUMN response_owner ${text}`,
        'ALTER TABLE turns ADD COLUMN response TEXT',
        'CREATE INDEX turns_by_response ON turns (project, session, response_id) WHERE response_id IS NOT NULL',
      ],
    },
    {
      version: 6,
      statements: [
        `ALTER TABLE traces ADD COLUMN trace_id ${text}`,
        'CREATE INDEX traces_by_trace_id ON traces (trace_id, started_at, id) WHERE trace_id IS NOT NULL',
      ],
    },
  ];
}

function sessionTables(text: string, clustered: string): string[] {
  return [
    `CREATE TABLE sessions (
      project ${text} NOT NULL, session ${text} NOT NULL, version BIGINT NOT NULL, next_sequence BIGINT NOT NULL,
      message_count BIGINT NOT NULL, token_count BIGINT NOT NULL, system TEXT NOT NULL, models TEXT NOT NULL,
      created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL, PRIMARY KEY (project, session))`,
    'CREATE INDEX sessions_by_update ON sessions (updated_at, project, session)',
    'CREATE INDEX sessions_of_project_by_update ON sessions (project, updated_at, session)',
    `CREATE TABLE messages (
      project ${text} NOT NULL, session ${text} NOT NULL, sequence BIGINT NOT NULL, version BIGINT NOT NULL,
      superseded SMALLINT NOT NULL, partial SMALLINT NOT NULL, degraded SMALLINT NOT NULL, tokens BIGINT NOT NULL,
      message TEXT NOT NULL, PRIMARY KEY (project, session, sequence)) ${clustered}`,
    `CREATE TABLE turns (
      project ${text} NOT NULL, session ${text} NOT NULL, version BIGINT NOT NULL, at BIGINT NOT NULL,
      request_id TEXT NOT NULL, model TEXT NOT NULL, message_count BIGINT NOT NULL, superseded_from BIGINT,
      PRIMARY KEY (project, session, version)) ${clustered}`,
  ];
}

function valueTables(text: string, clustered: string): string[] {
  return [
    `CREATE TABLE stored_values (
      key ${text} NOT NULL PRIMARY KEY, value TEXT NOT NULL, expires_at BIGINT, position BIGINT NOT NULL)`,
    'CREATE INDEX stored_values_by_expiry ON stored_values (expires_at)',
    `CREATE TABLE ledger (
      hour ${text} NOT NULL, project ${text} NOT NULL, service ${text} NOT NULL, "user" ${text} NOT NULL,
      session ${text} NOT NULL, key ${text} NOT NULL, route ${text} NOT NULL, model ${text} NOT NULL,
      upstream ${text} NOT NULL, shadow SMALLINT NOT NULL,
      calls BIGINT NOT NULL, failed_calls BIGINT NOT NULL, estimated_calls BIGINT NOT NULL, input_tokens BIGINT NOT NULL,
      cached_tokens BIGINT NOT NULL, output_tokens BIGINT NOT NULL, reasoning_tokens BIGINT NOT NULL, cost_nano_usd BIGINT NOT NULL,
      PRIMARY KEY (hour, project, service, "user", session, key, route, model, upstream, shadow)) ${clustered}`,
    `CREATE TABLE ledger_batches (batch_id ${text} NOT NULL PRIMARY KEY, at BIGINT NOT NULL) ${clustered}`,
    'CREATE INDEX ledger_batches_by_time ON ledger_batches (at)',
  ];
}

function traceTable(text: string): string[] {
  return [
    `CREATE TABLE traces (
      id ${text} NOT NULL PRIMARY KEY, started_at BIGINT NOT NULL, request_id ${text} NOT NULL, route ${text} NOT NULL,
      status BIGINT NOT NULL, session ${text}, record TEXT NOT NULL)`,
    'CREATE INDEX traces_by_time ON traces (started_at, id)',
    'CREATE INDEX traces_by_request ON traces (request_id, started_at, id)',
    'CREATE INDEX traces_by_session ON traces (session, started_at, id)',
    'CREATE INDEX traces_by_route ON traces (route, started_at, id)',
  ];
}

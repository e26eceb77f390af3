import type { LedgerQuery, TraceQuery } from '../../../contracts/cold-store.ts';
import { LEDGER_COUNTS } from '../../../contracts/ledger-counts.ts';

/** Reading and simple writing, in the SQL that both engines speak; `$n` is rewritten for SQLite. Every one goes by an index. */

/** One query for a session and its newest messages; the session's own row comes first. */
export const READ_SESSION = `
  SELECT -1 AS sequence, version AS tokens, message_count AS partial, 0 AS degraded, system AS message
  FROM sessions WHERE project = $1 AND session = $2
  UNION ALL
  SELECT * FROM (
    SELECT sequence, tokens, partial, degraded, message FROM messages
    WHERE project = $1 AND session = $2 AND superseded = 0 ORDER BY sequence DESC LIMIT $3) AS newest`;

/**
 * The same as it stood after the turn of version $4: what was stored until then and had not been superseded. What no longer counts because of a turn
 * that was deleted since stays away.
 */
const AT_VERSION = `
  messages.project = $1 AND messages.session = $2 AND messages.version <= $4
  AND NOT EXISTS (
    SELECT 1 FROM turns WHERE turns.project = $1 AND turns.session = $2
    AND turns.version > messages.version AND turns.version <= $4 AND turns.superseded_from <= messages.sequence)
  AND (superseded = 0 OR EXISTS (
    SELECT 1 FROM turns WHERE turns.project = $1 AND turns.session = $2 AND turns.version > $4 AND turns.superseded_from <= messages.sequence))`;
export const READ_SESSION_AT = `
  SELECT -1 AS sequence, version AS tokens, (SELECT COUNT(*) FROM messages WHERE ${AT_VERSION}) AS partial, 0 AS degraded, system AS message
  FROM sessions WHERE project = $1 AND session = $2
  UNION ALL
  SELECT * FROM (
    SELECT sequence, tokens, partial, degraded, message FROM messages WHERE ${AT_VERSION} ORDER BY sequence DESC LIMIT $3) AS newest`;

export const SESSION_VERSION = 'SELECT version FROM sessions WHERE project = $1 AND session = $2';

/** Was this very turn committed before (an answer that got lost on its way back)? */
export const SAME_TURN = `
  SELECT version FROM turns WHERE project = $1 AND session = $2 AND version = $3 AND request_id = $4 AND at = $5`;

export const FIND_TURN = `
  SELECT turns.version, turns.at, turns.model, turns.body, sessions.version FROM turns
  JOIN sessions ON sessions.project = turns.project AND sessions.session = turns.session
  WHERE turns.project = $1 AND turns.session = $2 AND turns.run = $3 ORDER BY turns.version DESC LIMIT 1`;
export const MESSAGES_OF_TURN = `
  SELECT sequence, tokens, partial, degraded, message FROM messages
  WHERE project = $1 AND session = $2 AND version = $3 AND superseded = 0 ORDER BY sequence`;

export const FIND_RESPONSE = `
  SELECT version, response FROM turns
  WHERE project = $1 AND session = $2 AND response_id = $3 AND response_owner = $4 ORDER BY version DESC LIMIT 1`;
export const TURN_OF_RESPONSE = `
  SELECT version, (SELECT MAX(version) FROM turns WHERE project = $1 AND session = $2) FROM turns
  WHERE project = $1 AND session = $2 AND response_id = $3 ORDER BY version DESC LIMIT 1`;
export const WHOLE_TURN = `
  SELECT sequence, tokens, partial, degraded, message FROM messages WHERE project = $1 AND session = $2 AND version = $3 ORDER BY sequence`;

const COUNTED = 'FROM messages WHERE project = $1 AND session = $2 AND version = $3 AND superseded = 0';
/** In this order. The first moves the session on, so that no copy of it elsewhere is taken for right; it changes nothing where there is no such turn. */
export const DELETE_TURN = [
  `UPDATE sessions SET version = version + 1, message_count = message_count - (SELECT COUNT(*) ${COUNTED}),
     token_count = token_count - (SELECT COALESCE(SUM(tokens), 0) ${COUNTED})
   WHERE project = $1 AND session = $2 AND EXISTS (SELECT 1 FROM turns WHERE project = $1 AND session = $2 AND version = $3)`,
  'DELETE FROM messages WHERE project = $1 AND session = $2 AND version = $3',
  'DELETE FROM turns WHERE project = $1 AND session = $2 AND version = $3',
] as const;
export const DELETE_EMPTY_SESSION = `
  DELETE FROM sessions WHERE project = $1 AND session = $2 AND NOT EXISTS (SELECT 1 FROM turns WHERE project = $1 AND session = $2)`;

export const DELETE_SESSION = [
  'DELETE FROM messages WHERE project = $1 AND session = $2',
  'DELETE FROM turns WHERE project = $1 AND session = $2',
  'DELETE FROM sessions WHERE project = $1 AND session = $2',
] as const;
export const OLD_SESSIONS = 'SELECT project, session FROM sessions WHERE updated_at < $1 ORDER BY updated_at LIMIT $2';

const SUMMARY = 'SELECT project, session, version, message_count, token_count, created_at, updated_at, models FROM sessions';
/** Newest first. A cursor is the last row's place. */
export function listSessionsSql(ofProject: boolean, after: boolean): string {
  const where: string[] = [];
  if (ofProject) where.push('project = $2');
  if (after) where.push(ofProject ? '(updated_at, session) < ($3, $4)' : '(updated_at, project, session) < ($2, $3, $4)');
  const order = ofProject ? 'updated_at DESC, session DESC' : 'updated_at DESC, project DESC, session DESC';
  return `${SUMMARY} ${where.length > 0 ? `WHERE ${where.join(' AND ')}` : ''} ORDER BY ${order} LIMIT $1`;
}

export const GET_VALUE = 'SELECT value FROM stored_values WHERE key = $1 AND (expires_at IS NULL OR expires_at > $2)';
export const SET_VALUE = `
  INSERT INTO stored_values (key, value, expires_at, position) VALUES ($1, $2, $3, $4)
  ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at`;
/** Set only where there is none, or an expired one. */
export const SET_VALUE_IF_ABSENT = `
  INSERT INTO stored_values (key, value, expires_at, position) VALUES ($1, $2, $3, $4)
  ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at, position = excluded.position
  WHERE stored_values.expires_at <= $5`;
export const DELETE_VALUE = 'DELETE FROM stored_values WHERE key = $1';
export const LIST_VALUES = `
  SELECT key, value FROM stored_values
  WHERE key >= $1 AND key < $2 AND (expires_at IS NULL OR expires_at > $3) ORDER BY position, key LIMIT $4`;
export const SWEEP_VALUES = 'DELETE FROM stored_values WHERE expires_at <= $1';
export const SWEEP_BATCHES = 'DELETE FROM ledger_batches WHERE at < $1';

export const CLAIM_BATCH = 'INSERT INTO ledger_batches (batch_id, at) VALUES ($1, $2) ON CONFLICT (batch_id) DO NOTHING';
const LEDGER_SUMS = [...LEDGER_COUNTS, 'cost_nano_usd'];
export const LEDGER_KEYS = ['hour', 'project', 'service', 'user', 'session', 'key', 'route', 'model', 'upstream', 'shadow'] as const;
/** `user` is a reserved word of PostgreSQL's. */
const quoted = (column: string): string => `"${column}"`;
const LEDGER_COLUMNS = [...LEDGER_KEYS, ...LEDGER_SUMS];
const COST = LEDGER_COLUMNS.length - 1;
const INTO_LEDGER = `INSERT INTO ledger (${LEDGER_COLUMNS.map(quoted).join(', ')})`;
const ADDED_TO_LEDGER = `
  ON CONFLICT (${LEDGER_KEYS.map(quoted).join(', ')})
  DO UPDATE SET ${LEDGER_SUMS.map((count) => `${count} = ledger.${count} + excluded.${count}`).join(', ')}`;
export const ADD_TO_LEDGER = `${INTO_LEDGER}
  VALUES (${LEDGER_COLUMNS.map((_, index) => (index === COST ? `CAST($${index + 1} AS BIGINT)` : `$${index + 1}`)).join(', ')}) ${ADDED_TO_LEDGER}`;
/** PostgreSQL's: any number of rows, one array a column. */
export const ADD_MANY_TO_LEDGER = `${INTO_LEDGER}
  SELECT * FROM unnest(${LEDGER_COLUMNS.map((_, index) => `$${index + 1}::${index < 9 ? 'TEXT' : index === 9 ? 'SMALLINT' : 'BIGINT'}[]`).join(', ')})
  ${ADDED_TO_LEDGER}`;

/** `by` holds checked names. Money comes as text: it may pass 2^53. */
export function readLedger({ from, to, by, shadow, project, session }: LedgerQuery, encode: (text: string) => string): { sql: string; values: string[] } {
  const values = [from, to];
  const where = ['hour >= $1', 'hour < $2'];
  if (shadow !== 'with') where.push(`shadow = ${shadow === 'only' ? 1 : 0}`);
  if (project !== undefined) where.push(`project = $${values.push(encode(project))}`);
  // The second half is the index's own condition: without it no planner takes that index.
  if (session !== undefined) where.push(`session = $${values.push(encode(session))}${session === '' ? '' : " AND session <> ''"}`);
  const keys = LEDGER_KEYS.map((key) => (by.includes(key) ? quoted(key) : `${key === 'shadow' ? (shadow === 'only' ? 1 : 0) : "''"} AS ${quoted(key)}`));
  const sums = LEDGER_SUMS.map((count) => `CAST(SUM(${count}) AS TEXT) AS ${count}`);
  const grouped = by.map(quoted).join(', ');
  const sql = `SELECT ${[...keys, ...sums].join(', ')} FROM ledger WHERE ${where.join(' AND ')}
    ${grouped === '' ? 'HAVING COUNT(*) > 0' : `GROUP BY ${grouped} ORDER BY ${grouped}`}`;
  return { sql, values };
}

const INTO_TRACES = 'INSERT INTO traces (id, started_at, request_id, route, status, session, record, trace_id)';
const WRITTEN_AGAIN = 'ON CONFLICT (id) DO UPDATE SET record = excluded.record, status = excluded.status';
export const WRITE_TRACE = `${INTO_TRACES} VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ${WRITTEN_AGAIN}`;
/** PostgreSQL's: any number of traces, one array a column. */
export const WRITE_TRACES = `${INTO_TRACES}
  SELECT * FROM unnest($1::TEXT[], $2::BIGINT[], $3::TEXT[], $4::TEXT[], $5::BIGINT[], $6::TEXT[], $7::TEXT[], $8::TEXT[]) ${WRITTEN_AGAIN}`;
export const READ_TRACE = 'SELECT record FROM traces WHERE id = $1';
export const DELETE_TRACES = 'DELETE FROM traces WHERE started_at < $1';
export const DELETE_TRACES_BEYOND = 'DELETE FROM traces WHERE started_at < (SELECT started_at FROM traces ORDER BY started_at DESC LIMIT 1 OFFSET $1)';

/** Newest first; `after` is the last row's place. */
export function listTraces(
  query: TraceQuery,
  after: [number, string] | undefined,
  encode: (text: string) => string,
): { sql: string; values: (string | number)[] } {
  const where: string[] = [];
  const values: (string | number)[] = [];
  const add = (condition: string, ...given: (string | number)[]): void => {
    where.push(given.reduce<string>((text, value) => text.replace('?', `$${values.push(value)}`), condition));
  };
  if (query.requestId !== undefined) add('request_id = ?', encode(query.requestId));
  if (query.traceId !== undefined) add('trace_id = ?', encode(query.traceId));
  if (query.route !== undefined) add('route = ?', encode(query.route));
  if (query.status !== undefined) add('status = ?', query.status);
  if (query.session !== undefined) add('session = ?', encode(query.session));
  if (query.from !== undefined) add('started_at >= ?', query.from);
  if (query.to !== undefined) add('started_at < ?', query.to);
  if (after !== undefined) add('(started_at, id) < (?, ?)', after[0], after[1]);
  const limit = `LIMIT $${values.push(query.limit)}`;
  return {
    sql: `SELECT started_at, id, record FROM traces ${where.length > 0 ? `WHERE ${where.join(' AND ')}` : ''} ORDER BY started_at DESC, id DESC ${limit}`,
    values,
  };
}

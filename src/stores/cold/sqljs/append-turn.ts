import { type TurnRecord, VersionConflict } from '../../../contracts/cold-store.ts';
import { toTurnRow } from '../sql/rows.ts';
import { SAME_TURN } from '../sql/statements.ts';
import type { SqliteDatabase } from './database.ts';
import { pack } from './packed-text.ts';

const HEAD = 'SELECT version, next_sequence FROM sessions WHERE project = $1 AND session = $2';
const SUPERSEDED = 'SELECT COUNT(*), TOTAL(tokens) FROM messages WHERE project = $1 AND session = $2 AND sequence >= $3 AND superseded = 0';
const SUPERSEDE = 'UPDATE messages SET superseded = 1 WHERE project = $1 AND session = $2 AND sequence >= $3 AND superseded = 0';
const UPSERT = `
  INSERT INTO sessions (project, session, version, next_sequence, message_count, token_count, system, models, created_at, updated_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)
  ON CONFLICT (project, session) DO UPDATE SET version = excluded.version, next_sequence = excluded.next_sequence,
    message_count = message_count + excluded.message_count, token_count = token_count + excluded.token_count,
    system = excluded.system, updated_at = excluded.updated_at,
    models = CASE WHEN instr(models, excluded.models) > 0 THEN models ELSE models || excluded.models END`;
const INSERT_MESSAGE = `
  INSERT INTO messages (project, session, sequence, version, superseded, partial, degraded, tokens, message)
  VALUES ($1, $2, $3, $4, 0, $5, $6, $7, CAST($8 AS TEXT))`;
const INSERT_TURN = `
  INSERT INTO turns (project, session, version, at, request_id, model, message_count, superseded_from, run, body, response_id, response_owner, response)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`;

/** Whole or not at all: what it has done is undone where it throws. A conflict is told before anything is written. */
export function appendTurn(db: SqliteDatabase, turn: TurnRecord): number {
  const row = toTurnRow(turn);
  const name = [row.project, row.session] as const;
  const [head] = db.all(HEAD, name);
  const [stored, sequence] = [Number(head?.[0] ?? 0), Number(head?.[1] ?? 1)];
  const version = row.baseVersion + 1;
  if (stored !== row.baseVersion) {
    if (db.all(SAME_TURN, [...name, version, row.requestId, row.at]).length > 0) return version;
    throw new VersionConflict(turn.session);
  }
  const [gone = 0, goneTokens = 0] = row.supersedeFrom === null ? [] : (db.all(SUPERSEDED, [...name, row.supersedeFrom])[0] ?? []).map(Number);
  if (row.supersedeFrom !== null && gone > 0) db.run(SUPERSEDE, [...name, row.supersedeFrom]);
  const count = row.messages.length;
  db.run(UPSERT, [...name, version, sequence + count, count - gone, row.tokens - goneTokens, row.system, row.modelEntry, row.at]);
  for (const [index, { message, tokens, partial, degraded }] of row.messages.entries()) {
    db.run(INSERT_MESSAGE, [...name, sequence + index, version, partial, degraded, tokens, Buffer.from(message)]);
  }
  db.run(INSERT_TURN, [
    ...name,
    version,
    row.at,
    row.requestId,
    row.model,
    count,
    row.supersedeFrom,
    row.run,
    row.body,
    row.responseId,
    row.responseOwner,
    row.response && pack(row.response),
  ]);
  return version;
}

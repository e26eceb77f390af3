import type { TurnRow } from '../sql/rows.ts';

/**
 * A turn is one statement, so it is whole or not at all, and costs one round trip. A turn that begins a session inserts its row;
 * any other moves the row of exactly the version that it was begun on. The rest happens only where that gave a row.
 */
const ITEMS = 'unnest($9::smallint[], $10::smallint[], $11::bigint[], $12::text[]) WITH ORDINALITY AS item (partial, degraded, tokens, message, place)';
const REST = `
  added AS (
    INSERT INTO messages (project, session, sequence, version, superseded, partial, degraded, tokens, message)
    SELECT $1, $2, moved.next_sequence - $4::bigint + item.place - 1, moved.version, 0, item.partial, item.degraded, item.tokens, item.message
    FROM moved, ${ITEMS}),
  kept AS (
    INSERT INTO turns (project, session, version, at, request_id, model, message_count, superseded_from, run, body, response_id, response_owner, response)
    SELECT $1, $2, moved.version, $8, $13, $14, $4::bigint, $15::bigint, $16, $17, $18, $19, $20 FROM moved)
  SELECT version FROM moved`;

const FIRST = `
  WITH moved AS (
    INSERT INTO sessions (project, session, version, next_sequence, message_count, token_count, system, models, created_at, updated_at)
    SELECT $1, $2, $3::bigint + 1, $4::bigint + 1, $4::bigint, $5::bigint, $6, $7, $8::bigint, $8::bigint
    ON CONFLICT (project, session) DO NOTHING RETURNING version, next_sequence),
  ${REST}`;

const GONE = 'FROM messages WHERE project = $1 AND session = $2 AND superseded = 0 AND sequence >= $15::bigint';
const NEXT = `
  WITH moved AS (
    UPDATE sessions SET version = version + 1, next_sequence = next_sequence + $4::bigint,
      message_count = message_count + $4::bigint - (SELECT COUNT(*) ${GONE}),
      token_count = token_count + $5::bigint - (SELECT COALESCE(SUM(tokens), 0) ${GONE}),
      system = $6, updated_at = $8::bigint,
      models = CASE WHEN strpos(models, $7) > 0 THEN models ELSE models || $7 END
    WHERE project = $1 AND session = $2 AND version = $3::bigint RETURNING version, next_sequence),
  superseded AS (
    UPDATE messages SET superseded = 1
    WHERE project = $1 AND session = $2 AND superseded = 0 AND sequence >= $15::bigint AND EXISTS (SELECT 1 FROM moved)),
  ${REST}`;

export function appendTurnQuery(turn: TurnRow): { text: string; values: unknown[] } {
  const column = <K extends keyof TurnRow['messages'][number]>(name: K) => turn.messages.map((message) => message[name]);
  const values = [
    turn.project,
    turn.session,
    turn.baseVersion,
    turn.messages.length,
    turn.tokens,
    turn.system,
    turn.modelEntry,
    turn.at,
    column('partial'),
    column('degraded'),
    column('tokens'),
    column('message'),
    turn.requestId,
    turn.model,
    turn.supersedeFrom,
    turn.run,
    turn.body,
    turn.responseId,
    turn.responseOwner,
    turn.response,
  ];
  return { text: turn.baseVersion === 0 ? FIRST : NEXT, values };
}

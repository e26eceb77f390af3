import type {
  ColdSession,
  FoundResponse,
  FoundTurn,
  LedgerQuery,
  LedgerRow,
  Page,
  SessionSummary,
  TraceQuery,
  TraceRecord,
  TurnRecord,
} from '../../../contracts/cold-store.ts';
import { recapKey } from '../../../contracts/recap-key.ts';
import * as rows from '../sql/rows.ts';
import * as sql from '../sql/statements.ts';
import { decodeText, encodeText } from '../sql/text.ts';
import { appendTurn } from './append-turn.ts';
import type { SqliteDatabase } from './database.ts';
import { unpack } from './packed-text.ts';
import type { OperationName } from './protocol.ts';

/**
 * What the thread can do. Results depend on nothing but the database and the arguments (the time is one of them), because the
 * journal replays calls, not their effects.
 */
export interface Operation {
  writes: boolean;
  /** Removes what people said: the journal must soon forget it too. */
  erases?: true;
  run(db: SqliteDatabase, args: readonly unknown[]): unknown;
}
/** The arguments were written by the store itself, of the types that its contract names. */
function read<A extends readonly unknown[]>(run: (db: SqliteDatabase, ...args: A) => unknown): Operation {
  return { writes: false, run: (db, args) => run(db, ...(args as A)) };
}
function write<A extends readonly unknown[]>(run: (db: SqliteDatabase, ...args: A) => unknown): Operation {
  return { writes: true, run: (db, args) => run(db, ...(args as A)) };
}

const SWEEP_STEP = 200;
/** The database is in memory: the oldest traces make room, or a busy gateway would fill it. Some 60 MB. */
const MOST_TRACES = 20_000;

export const OPERATIONS: Record<OperationName, Operation> = {
  readSession: read((db, project: string, session: string, limit: number, at: number | null = null): ColdSession | undefined => {
    const asked = [encodeText(project), encodeText(session), limit];
    return rows.toColdSession(at === null ? db.all(sql.READ_SESSION, asked) : db.all(sql.READ_SESSION_AT, [...asked, at]));
  }),
  sessionVersion: read((db, project: string, session: string) => Number(db.all(sql.SESSION_VERSION, [encodeText(project), encodeText(session)])[0]?.[0] ?? 0)),
  appendTurn: write((db, turn: TurnRecord) => appendTurn(db, turn)),
  findTurn: read((db, project: string, session: string, mark: string): FoundTurn | undefined => {
    const name = [encodeText(project), encodeText(session)] as const;
    const [found] = db.all(sql.FIND_TURN, [...name, encodeText(mark)]);
    return found && rows.toFoundTurn(found, db.all(sql.MESSAGES_OF_TURN, [...name, Number(found[0])]));
  }),
  findResponse: read((db, project: string, session: string, { id, owner }: { id: string; owner: string }): FoundResponse | undefined => {
    const name = [encodeText(project), encodeText(session)] as const;
    const [found] = db.all(sql.FIND_RESPONSE, [...name, encodeText(id), encodeText(owner)]);
    return found && rows.toFoundResponse(found[0], unpack(String(found[1])), db.all(sql.WHOLE_TURN, [...name, Number(found[0])]));
  }),
  turnOfResponse: read((db, project: string, session: string, id: string) => {
    const [found] = db.all(sql.TURN_OF_RESPONSE, [encodeText(project), encodeText(session), encodeText(id)]);
    return found && rows.toPlace(found);
  }),
  deleteTurn: {
    ...write((db, project: string, session: string, version: number) => deleteTurn(db, encodeText(project), encodeText(session), version)),
    erases: true,
  },
  listSessions: read(listSessions),
  deleteSession: { ...write((db, project: string, session: string) => deleteSession(db, encodeText(project), encodeText(session))), erases: true },
  deleteSessionsBefore: { ...write(deleteSessionsBefore), erases: true },
  getValue: read((db, key: string, now: number) => {
    const value = db.all(sql.GET_VALUE, [encodeText(key), now])[0]?.[0];
    return value === undefined ? undefined : decodeText(String(value));
  }),
  setValue: write((db, key: string, value: string, expiresAt: number | null, position: number, ifAbsentAt: number | null) => {
    const values = [encodeText(key), encodeText(value), expiresAt, position];
    return ifAbsentAt === null ? db.run(sql.SET_VALUE, values) > 0 : db.run(sql.SET_VALUE_IF_ABSENT, [...values, ifAbsentAt]) > 0;
  }),
  deleteValue: write((db, key: string) => void db.run(sql.DELETE_VALUE, [encodeText(key)])),
  listValues: read((db, prefix: string, limit: number, now: number) => {
    const from = encodeText(prefix);
    const found = db.all(sql.LIST_VALUES, [from, rows.prefixEnd(from), now, limit]);
    return found.map(([key, value]) => ({ key: decodeText(String(key)), value: decodeText(String(value)) }));
  }),
  addToLedger: write(addToLedger),
  readLedger: read((db, query: LedgerQuery) => {
    const select = sql.readLedger(query, encodeText);
    return db.all(select.sql, select.values).map(rows.toLedgerRow);
  }),
  writeTraces: write((db, traces: TraceRecord[]) => {
    const refused = eachAlone(db, traces, (trace) => db.run(sql.WRITE_TRACE, rows.traceValues(trace)));
    db.run(sql.DELETE_TRACES_BEYOND, [MOST_TRACES - 1]);
    return refused;
  }),
  readTrace: read((db, id: string): TraceRecord | undefined => {
    const record = db.all(sql.READ_TRACE, [encodeText(id)])[0]?.[0];
    return record === undefined ? undefined : rows.toTrace(record);
  }),
  listTraces: read(listTraces),
  deleteTracesBefore: write((db, at: number) => db.run(sql.DELETE_TRACES, [at])),
  sweep: write((db, now: number, batchesBefore: number) => {
    db.run(sql.SWEEP_VALUES, [now]);
    db.run(sql.SWEEP_BATCHES, [batchesBefore]);
  }),
  healthy: read(() => true),
};

function listSessions(db: SqliteDatabase, query: { project?: string; limit: number; cursor?: string }): Page<SessionSummary> {
  const project = query.project === undefined ? [] : [encodeText(query.project)];
  const after = rows.decodeCursor(query.cursor, 3 - project.length);
  const found = db.all(sql.listSessionsSql(project.length > 0, after !== undefined), [query.limit + 1, ...project, ...(after ?? [])]);
  return rows.toPage(found, query.limit, rows.toSummary, (row) => [Number(row[6]), ...(project.length > 0 ? [] : [String(row[0])]), String(row[1])]);
}

function deleteSession(db: SqliteDatabase, project: string, session: string): boolean {
  let deleted = 0;
  for (const statement of sql.DELETE_SESSION) deleted = db.run(statement, [project, session]);
  db.run(sql.DELETE_VALUE, [encodeText(recapKey(decodeText(project), decodeText(session)))]);
  return deleted > 0;
}

function deleteTurn(db: SqliteDatabase, project: string, session: string, version: number): boolean {
  for (const statement of sql.DELETE_TURN) if (db.run(statement, [project, session, version]) === 0 && statement === sql.DELETE_TURN[0]) return false;
  db.run(sql.DELETE_EMPTY_SESSION, [project, session]);
  return true;
}

function deleteSessionsBefore(db: SqliteDatabase, at: number): number {
  let deleted = 0;
  for (;;) {
    const old = db.all(sql.OLD_SESSIONS, [at, SWEEP_STEP]);
    for (const [project, session] of old) if (deleteSession(db, String(project), String(session))) deleted += 1;
    if (old.length < SWEEP_STEP) return deleted;
  }
}

/** Gives the number of rows that had to be left out. */
function addToLedger(
  db: SqliteDatabase,
  batchId: string,
  ledgerRows: readonly (Omit<LedgerRow, 'cost_nano_usd' | 'saved_tokens'> & { cost_nano_usd: string; saved_tokens?: number })[],
  at: number,
): number {
  if (db.run(sql.CLAIM_BATCH, [encodeText(batchId), at]) === 0) return 0;
  // A journal of before they were counted has none.
  return eachAlone(db, ledgerRows, ({ saved_tokens = 0, cost_nano_usd, ...row }) =>
    db.run(sql.ADD_TO_LEDGER, rows.ledgerValues(Object.assign(row, { saved_tokens, cost_nano_usd: BigInt(cost_nano_usd) }))),
  );
}

/** One record that the database refuses does not take its neighbours along. Nearly always it takes them all: then one savepoint does. */
function eachAlone<T>(db: SqliteDatabase, records: readonly T[], store: (record: T) => void): number {
  db.run('SAVEPOINT records');
  try {
    for (const record of records) store(record);
    return 0;
  } catch {
    db.run('ROLLBACK TO records');
  } finally {
    db.run('RELEASE records');
  }
  let refused = 0;
  for (const record of records) {
    db.run('SAVEPOINT record');
    try {
      store(record);
    } catch {
      refused += 1;
      db.run('ROLLBACK TO record');
    }
    db.run('RELEASE record');
  }
  return refused;
}

function listTraces(db: SqliteDatabase, query: TraceQuery): Page<TraceRecord> {
  const after = rows.decodeCursor(query.cursor, 2);
  const place: [number, string] | undefined = after === undefined ? undefined : [Number(after[0]), String(after[1])];
  const select = sql.listTraces({ ...query, limit: query.limit + 1 }, place, encodeText);
  const found = db.all(select.sql, select.values);
  return rows.toPage(
    found,
    query.limit,
    (row) => rows.toTrace(row[2]),
    (row) => [Number(row[0]), String(row[1])],
  );
}

import { resolve } from 'node:path';
import type { ColdSession, ColdStore, FoundResponse, FoundTurn, LedgerRow, Page, SessionSummary, TraceRecord } from '../../contracts/cold-store.ts';
import { withLimit } from '../time-limit.ts';
import type { ColdStoreOptions } from './sql/options.ts';
import { checkLedgerColumns, mergeLedger } from './sql/rows.ts';
import { createSweep } from './sql/sweep.ts';
import type { OperationName } from './sqljs/protocol.ts';
import { createThread } from './sqljs/thread.ts';
import { createUnwrittenCalls } from './sqljs/unwritten-calls.ts';

const HEALTH_MS = 2_000;

/** `sqlite:///path` as an absolute path; undefined for `sqlite::memory:`. `/./x` and `/../x` are relative to the working directory. */
function fileOf(url: string): string | undefined {
  if (url === 'sqlite::memory:') return undefined;
  const path = /^sqlite:\/\/(\/.+)$/.exec(url)?.[1];
  if (path === undefined) throw new Error('the embedded database is named sqlite:///path/to/hermes.db or sqlite::memory:');
  return resolve(/^\/\.\.?\//.test(path) ? path.slice(1) : path.replace(/^\/+/, '/'));
}

/** The embedded engine: SQLite (sql.js) in memory, on a thread of its own, made durable by a journal and checkpoints. */
export default function create({ url, log, environment }: ColdStoreOptions): ColdStore {
  const file = fileOf(url);
  const thread = createThread({ file, owner: environment.uuid() }, log);
  // Results are of the types that the operation of that name gives; the thread is our own code.
  const call = <T>(operation: OperationName, ...args: unknown[]): Promise<T> => thread.call(operation, args) as Promise<T>;
  const sweep = createSweep(environment, (now, batchesBefore) => call('sweep', now, batchesBefore));
  const unwritten =
    file === undefined
      ? undefined
      : createUnwrittenCalls(file, (err) => log.warn({ err }, 'booked calls cannot be kept on the disk; a kill -9 would lose the newest'));
  const addToLedger = async (batchId: string, rows: readonly LedgerRow[]): Promise<void> => {
    const merged = mergeLedger(rows).map((row) => ({ ...row, cost_nano_usd: String(row.cost_nano_usd) }));
    const refused = await call<number>('addToLedger', batchId, merged, environment.now());
    if (refused > 0) log.error({ rows: refused }, 'ledger rows were refused by the database and are lost; the others are stored');
    unwritten?.written(batchId);
  };
  return {
    name: 'sqljs',
    async open() {
      await thread.open();
      for (const { batchId, rows } of unwritten?.left() ?? []) await addToLedger(batchId, rows);
      sweep.start();
    },
    readSession: (project, session, limit, at) => call<ColdSession | undefined>('readSession', project, session, limit, at ?? null),
    sessionVersion: (project, session) => call<number>('sessionVersion', project, session),
    appendTurn: (turn) => thread.call('appendTurn', [turn], turn.session) as Promise<number>,
    findTurn: (project, session, mark) => call<FoundTurn | undefined>('findTurn', project, session, mark),
    findResponse: (project, session, response) => call<FoundResponse | undefined>('findResponse', project, session, response),
    turnOfResponse: (project, session, id) => call<{ version: number; newest: boolean } | undefined>('turnOfResponse', project, session, id),
    deleteTurn: (project, session, version) => call<boolean>('deleteTurn', project, session, version),
    listSessions: (query) => call<Page<SessionSummary>>('listSessions', query),
    deleteSession: (project, session) => call<boolean>('deleteSession', project, session),
    deleteSessionsBefore: (at) => call<number>('deleteSessionsBefore', at),
    getValue: (key) => call<string | undefined>('getValue', key, environment.now()),
    setValue: (key, value, expiresAt, ifAbsent = false) =>
      call<boolean>('setValue', key, value, expiresAt ?? null, sweep.position(), ifAbsent ? environment.now() : null),
    deleteValue: (key) => call<void>('deleteValue', key),
    listValues: (prefix, limit) => call<{ key: string; value: string }[]>('listValues', prefix, limit, environment.now()),
    ...(unwritten && { noteCall: unwritten.note }),
    addToLedger,
    async readLedger(query): Promise<LedgerRow[]> {
      checkLedgerColumns(query.by);
      return call<LedgerRow[]>('readLedger', query);
    },
    async writeTraces(traces) {
      const refused = await call<number>('writeTraces', traces);
      if (refused > 0) log.error({ traces: refused }, 'traces were refused by the database and are lost; the others are stored');
    },
    readTrace: (id) => call<TraceRecord | undefined>('readTrace', id),
    listTraces: (query) => call<Page<TraceRecord>>('listTraces', query),
    deleteTracesBefore: (at) => call<number>('deleteTracesBefore', at),
    healthy: () => withLimit(call<boolean>('healthy'), HEALTH_MS).catch(() => false),
    async close() {
      sweep.stop();
      await thread.close();
    },
  };
}

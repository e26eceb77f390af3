import { parentPort, workerData } from 'node:worker_threads';
import { VersionConflict } from '../../../contracts/cold-store.ts';
import { parseJson } from '../../../wire/json.ts';
import type { SqliteDatabase } from './database.ts';
import { OpenTransaction } from './open-transaction.ts';
import { OPERATIONS } from './operations.ts';
import type { FromThread, OperationName, Reply, Request, ThreadOptions, ToThread } from './protocol.ts';
import { openStorage, type Storage } from './storage.ts';

/**
 * The thread that owns the embedded database. Requests that have arrived by the time the loop comes round are one batch: run them, journal
 * them with one fsync, and only then answer, readers too. So nobody is ever told of something that a power cut could still undo.
 */
const CHECK_EVERY_MS = 1_000;
const options = workerData as ThreadOptions;
const send = (message: FromThread): void => parentPort?.postMessage(message);

let waiting: Request[] = [];
let failing = false;

function replay(db: SqliteDatabase, text: string): void {
  const end = text.indexOf('\n');
  OPERATIONS[text.slice(0, end) as OperationName].run(db, parseJson(text.slice(end + 1)) as unknown[]);
}

function runBatch(storage: Storage, open: OpenTransaction): void {
  const batch = waiting;
  waiting = [];
  const { db } = storage;
  const writes = batch.some(([, operation]) => OPERATIONS[operation].writes);
  if (!failing && !writes && !open.active) {
    send({ replies: runEach(db, batch, 'apart').replies });
    return;
  }
  open.begin();
  const { replies, records } = runAll(db, batch, open);
  try {
    if (failing && records.length === 0) records.push('healthy\n[]');
    if (records.length > 0) storage.journal(records);
  } catch (error) {
    // What could not be made durable did not happen; those who only read may have seen it.
    open.undo();
    if (!failing)
      send({ log: { level: 'error', fields: { reason: codeOf(error) }, message: 'the journal cannot be written; turns are refused until it can' } });
    failing = true;
    send({ replies: batch.map(([id]) => [id, 'unavailable', codeOf(error)]) });
    return;
  }
  failing = false;
  open.keep(records);
  if (batch.some(([, operation]) => OPERATIONS[operation].erases === true)) storage.eraseSoon();
  send({ replies });
}

interface Ran {
  replies: Reply[];
  /** For the journal. */
  records: string[];
}

/** Nearly always nothing fails: savepoints are made only where something did. */
function runAll(db: SqliteDatabase, batch: readonly Request[], open: OpenTransaction): Ran {
  try {
    return runEach(db, batch, 'together');
  } catch {
    open.undo();
    return runEach(db, batch, 'apart');
  }
}

/**
 * `apart`: one that fails leaves the others as they are. `together`: it throws, a read as well, for SQLite ends a transaction by itself where it has
 * no memory or room.
 */
function runEach(db: SqliteDatabase, batch: readonly Request[], how: 'apart' | 'together'): Ran {
  const records: string[] = [];
  const replies = batch.map((request): Reply => {
    const [id, name, text] = request;
    const { writes, run } = OPERATIONS[name];
    if (how === 'apart') db.run('SAVEPOINT request');
    try {
      const result = run(db, parseJson(text) as unknown[]);
      if (writes) records.push(`${name}\n${text}`);
      return [id, 'done', result];
    } catch (error) {
      // Told before anything is written.
      if (error instanceof VersionConflict) return [id, 'conflict', null];
      if (how === 'together') throw error;
      db.run('ROLLBACK TO request');
      return [id, 'refused', String(error)];
    } finally {
      if (how === 'apart') db.run('RELEASE request');
    }
  });
  return { replies, records };
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}

try {
  const storage = await openStorage(options, replay, (level, fields, message) => send({ log: { level, fields, message } }));
  const open = new OpenTransaction(storage.db, replay);
  const checkpoint = (): void => {
    if (!storage.due()) return;
    open.commit();
    void storage.checkpoint();
  };
  const timer = setInterval(checkpoint, CHECK_EVERY_MS);
  parentPort?.on('message', (message: ToThread) => {
    if ('close' in message) {
      clearInterval(timer);
      if (waiting.length > 0) runBatch(storage, open);
      open.commit();
      void storage.close().finally(() => send({ closed: true }));
      return;
    }
    if (waiting.length === 0) setImmediate(() => waiting.length > 0 && runBatch(storage, open));
    waiting.push(...message.requests);
  });
  send({ opened: true });
  checkpoint();
} catch (error) {
  send({ failed: error instanceof Error ? error.message : String(error) });
}

import { parentPort, workerData } from 'node:worker_threads';
import { VersionConflict } from '../../../contracts/cold-store.ts';
import { parseJson } from '../../../wire/json.ts';
import type { SqliteDatabase } from './database.ts';
import { OPERATIONS } from './operations.ts';
import type { FromThread, OperationName, Reply, Request, ThreadOptions, ToThread } from './protocol.ts';
import { openStorage, type Storage } from './storage.ts';

/**
 * The thread that owns the embedded database. Requests that have arrived by the time the loop comes round are one batch: run
 * in one transaction, journal them with one fsync, and only then answer, readers too. So nobody
 * is ever told of something that a power cut could still undo.
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

function runBatch(storage: Storage): void {
  const batch = waiting;
  waiting = [];
  const { db } = storage;
  const transaction = failing || batch.some(([, operation]) => OPERATIONS[operation].writes);
  if (!transaction) {
    send({ replies: runEach(db, batch, true).replies });
    return;
  }
  const { replies, records } = runAll(db, batch);
  try {
    if (failing && records.length === 0) records.push('healthy\n[]');
    if (records.length > 0) storage.journal(records);
    if (batch.some(([, operation]) => OPERATIONS[operation].erases === true)) storage.eraseSoon();
    db.run('COMMIT');
    failing = false;
    send({ replies });
  } catch (error) {
    // What could not be made durable did not happen; those who only read may have seen it.
    db.run('ROLLBACK');
    if (!failing)
      send({ log: { level: 'error', fields: { reason: codeOf(error) }, message: 'the journal cannot be written; turns are refused until it can' } });
    failing = true;
    send({ replies: batch.map(([id]) => [id, 'unavailable', codeOf(error)]) });
  }
}

interface Ran {
  replies: Reply[];
  /** For the journal. */
  records: string[];
}

/** Within a transaction, left open. Nearly always nothing fails: savepoints are made only where something did. */
function runAll(db: SqliteDatabase, batch: readonly Request[]): Ran {
  db.run('BEGIN');
  try {
    return runEach(db, batch, false);
  } catch {
    db.run('ROLLBACK');
    db.run('BEGIN');
    return runEach(db, batch, true);
  }
}

/** `apart`: one that fails leaves the others as they are; else it throws. */
function runEach(db: SqliteDatabase, batch: readonly Request[], apart: boolean): Ran {
  const records: string[] = [];
  const replies = batch.map((request): Reply => {
    const [id, name, text] = request;
    const { writes, run } = OPERATIONS[name];
    const savepoint = apart && writes;
    if (savepoint) db.run('SAVEPOINT request');
    try {
      const result = run(db, parseJson(text) as unknown[]);
      if (writes) records.push(`${name}\n${text}`);
      return [id, 'done', result];
    } catch (error) {
      // Told before anything is written.
      if (error instanceof VersionConflict) return [id, 'conflict', null];
      if (writes && !apart) throw error;
      if (savepoint) db.run('ROLLBACK TO request');
      return [id, 'refused', String(error)];
    } finally {
      if (savepoint) db.run('RELEASE request');
    }
  });
  return { replies, records };
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}

try {
  const storage = await openStorage(options, replay, (level, fields, message) => send({ log: { level, fields, message } }));
  const checkpoint = setInterval(() => {
    if (storage.due()) void storage.checkpoint();
  }, CHECK_EVERY_MS);
  parentPort?.on('message', (message: ToThread) => {
    if ('close' in message) {
      clearInterval(checkpoint);
      if (waiting.length > 0) runBatch(storage);
      void storage.close().finally(() => send({ closed: true }));
      return;
    }
    if (waiting.length === 0) setImmediate(() => waiting.length > 0 && runBatch(storage));
    waiting.push(...message.requests);
  });
  send({ opened: true });
  if (storage.due()) void storage.checkpoint();
} catch (error) {
  send({ failed: error instanceof Error ? error.message : String(error) });
}

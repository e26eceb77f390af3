import { parentPort, workerData } from 'node:worker_threads';
import { VersionConflict } from '../../../contracts/cold-store.ts';
import { parseJson } from '../../../wire/json.ts';
import type { SqliteDatabase } from './database.ts';
import { OPERATIONS } from './operations.ts';
import type { FromThread, OperationName, Reply, Request, ThreadOptions, ToThread } from './protocol.ts';
import { openStorage, type Storage } from './storage.ts';

/**
 * The thread that owns the embedded database. Requests that have arrived by the time the loop comes round are one batch: run
 * each in a savepoint of one transaction, journal them with one fsync, and only then answer, readers too. So nobody
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
  const records: string[] = [];
  const transaction = failing || batch.some(([, operation]) => OPERATIONS[operation].writes);
  if (transaction) db.run('BEGIN');
  const replies = batch.map((request) => runOne(db, request, records));
  if (!transaction) {
    send({ replies });
    return;
  }
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

function runOne(db: SqliteDatabase, [id, name, text]: Request, records: string[]): Reply {
  const operation = OPERATIONS[name];
  if (!operation.writes) {
    try {
      return [id, 'done', operation.run(db, parseJson(text) as unknown[])];
    } catch (error) {
      return [id, 'refused', String(error)];
    }
  }
  db.run('SAVEPOINT request');
  try {
    const result = operation.run(db, parseJson(text) as unknown[]);
    db.run('RELEASE request');
    records.push(`${name}\n${text}`);
    return [id, 'done', result];
  } catch (error) {
    db.run('ROLLBACK TO request');
    db.run('RELEASE request');
    return error instanceof VersionConflict ? [id, 'conflict', null] : [id, 'refused', String(error)];
  }
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

import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { migrations } from '../sql/schema.ts';
import { openDatabase, type SqliteDatabase } from './database.ts';
import { createJournal, EMPTY_JOURNAL, type JournalRecord, type JournalWriter, journalFile, listJournals, readJournal, syncFolder } from './journal.ts';
import { takeLock } from './lock.ts';
import type { ThreadOptions } from './protocol.ts';

type Notice = (level: 'info' | 'warn' | 'error', fields: object, message: string) => void;

/** The database in memory, its file and its journals. */
export interface Storage {
  readonly db: SqliteDatabase;
  /** Durable when it returns. */
  journal(texts: readonly string[]): void;
  /** The journal holds what has been deleted since: the next checkpoint comes soon. */
  eraseSoon(): void;
  /** Is it time for a checkpoint? */
  due(): boolean;
  /** Writes the whole database to its file; journals that it covers are removed. Called between batches, with no transaction open: what is in one would not be in the file. */
  checkpoint(): Promise<void>;
  close(): Promise<void>;
}

const SMALLEST_JOURNAL = 8 * 2 ** 20;
const LARGEST_JOURNAL = 64 * 2 ** 20;
const CHECKPOINT_EVERY_MS = 300_000;
const ERASE_AFTER_MS = 15_000;
const RETRY_MS = 30_000;
const ADVICE_BYTES = 512 * 2 ** 20;

export async function openStorage({ file, owner }: ThreadOptions, replay: (db: SqliteDatabase, text: string) => void, notice: Notice): Promise<Storage> {
  if (file === undefined) {
    const db = await openDatabase(undefined);
    migrate(db);
    return { db, journal: () => {}, eraseSoon: () => {}, due: () => false, checkpoint: async () => {}, close: async () => db.close() };
  }
  mkdirSync(dirname(file), { recursive: true });
  const lock = await takeLock(file, owner);
  try {
    const db = await load(file);
    migrate(db);
    db.run('CREATE TABLE IF NOT EXISTS hermes_journal (applied BIGINT NOT NULL)');
    const old = replayJournals(db, file, replay, notice);
    return new FileStorage(file, db, old, lock, notice);
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function load(file: string): Promise<SqliteDatabase> {
  // A checkpoint that a crash left half-written: the file that it would have replaced is whole.
  rmSync(`${file}.checkpoint`, { force: true });
  try {
    const db = await openDatabase(existsSync(file) ? readFileSync(file) : undefined);
    db.all('SELECT COUNT(*) FROM sqlite_master');
    return db;
  } catch (cause) {
    throw new Error(`${file} is not a SQLite database that can be opened; move it away or name another DATABASE_URL`, { cause });
  }
}

function migrate(db: SqliteDatabase): void {
  const steps = migrations('sqlite');
  const version = Number(db.all('PRAGMA user_version')[0]?.[0] ?? 0);
  const newest = steps.at(-1)?.version ?? 0;
  if (version > newest) throw new Error(`the database was written by a newer hermes (schema ${version}, this one knows ${newest}); start that version`);
  for (const step of steps.filter((candidate) => candidate.version > version)) {
    db.run('BEGIN');
    for (const statement of step.statements) db.run(statement);
    db.run(`PRAGMA user_version = ${step.version}`);
    db.run('COMMIT');
  }
}

interface OldJournals {
  files: string[];
  bytes: number;
  nextIndex: number;
  lastNumber: number;
}
function replayJournals(db: SqliteDatabase, file: string, replay: (db: SqliteDatabase, text: string) => void, notice: Notice): OldJournals {
  const old: OldJournals = { files: [], bytes: 0, nextIndex: 1, lastNumber: Number(db.all('SELECT applied FROM hermes_journal')[0]?.[0] ?? 0) };
  let replayed = 0;
  for (const journal of listJournals(file)) {
    const { records, tornBytes, damaged } = readJournal(journal.file);
    if (damaged)
      notice('error', { file: journal.file, bytes: tornBytes }, 'a journal is damaged in its middle; what follows the damage is not read and the file is kept');
    else if (tornBytes > 0) notice('info', { bytes: tornBytes }, 'the journal ends in a write that a crash cut off; nobody was told that it is stored');
    db.run('BEGIN');
    for (const record of records) if (replayRecord(db, record, old, replay, notice)) replayed += 1;
    db.run('COMMIT');
    if (damaged) renameSync(journal.file, `${journal.file}.damaged`);
    else old.files.push(journal.file);
    old.bytes += records.reduce((sum, record) => sum + record.text.length, 0);
    old.nextIndex = journal.index + 1;
  }
  if (replayed > 0) notice('info', { records: replayed }, 'replayed the journal');
  return old;
}
function replayRecord(
  db: SqliteDatabase,
  { number, text }: JournalRecord,
  old: OldJournals,
  replay: (db: SqliteDatabase, text: string) => void,
  notice: Notice,
): boolean {
  if (number <= old.lastNumber) return false;
  old.lastNumber = number;
  db.run('SAVEPOINT replayed');
  try {
    replay(db, text);
  } catch (error) {
    db.run('ROLLBACK TO replayed');
    notice('error', { record: number, reason: error instanceof Error ? error.name : 'unknown' }, 'a journal record could not be replayed; the others are');
  }
  db.run('RELEASE replayed');
  return true;
}

class FileStorage implements Storage {
  readonly db: SqliteDatabase;
  readonly #file: string;
  readonly #lock: { release(): void };
  readonly #notice: Notice;
  #covered: string[];
  #coveredBytes: number;
  #index: number;
  #number: number;
  #writer: JournalWriter;
  #checkpointed: number;
  #running: Promise<void> | undefined;
  #notBefore = 0;
  #erase = false;
  #advised = false;

  constructor(file: string, db: SqliteDatabase, old: OldJournals, lock: { release(): void }, notice: Notice) {
    this.#file = file;
    this.db = db;
    this.#lock = lock;
    this.#notice = notice;
    this.#covered = old.files;
    this.#coveredBytes = old.bytes;
    this.#index = old.nextIndex;
    this.#number = old.lastNumber;
    this.#writer = createJournal(journalFile(file, this.#index));
    this.#checkpointed = existsSync(file) ? performance.now() : Number.NEGATIVE_INFINITY;
  }

  journal(texts: readonly string[]): void {
    this.#writer.commit(texts.map((text) => ({ number: ++this.#number, text })));
  }

  eraseSoon(): void {
    this.#erase = true;
  }

  #pending(): number {
    return this.#writer.length() + this.#coveredBytes;
  }
  #dirty(): boolean {
    return this.#covered.length > 0 || this.#writer.length() > EMPTY_JOURNAL || !existsSync(this.#file);
  }

  due(): boolean {
    const now = performance.now();
    if (this.#running !== undefined || now < this.#notBefore || !this.#dirty()) return false;
    const bytes = Math.min(LARGEST_JOURNAL, Math.max(SMALLEST_JOURNAL, this.db.size() / 4));
    return this.#pending() > bytes || now - this.#checkpointed > (this.#erase ? ERASE_AFTER_MS : CHECKPOINT_EVERY_MS);
  }

  checkpoint(): Promise<void> {
    this.#running ??= this.#write().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** Everything so far as bytes; what comes after them goes to a new journal, unless the present one is still empty. */
  #snapshot(): Uint8Array {
    const next = this.#writer.length() > EMPTY_JOURNAL ? createJournal(journalFile(this.#file, this.#index + 1)) : undefined;
    try {
      this.db.run('DELETE FROM hermes_journal');
      this.db.run('INSERT INTO hermes_journal (applied) VALUES ($1)', [this.#number]);
      const bytes = this.db.export();
      if (next !== undefined) this.#turnTo(next);
      return bytes;
    } catch (error) {
      next?.close();
      if (next !== undefined) rmSync(next.file, { force: true });
      throw error;
    }
  }
  #turnTo(next: JournalWriter): void {
    this.#covered.push(this.#writer.file);
    this.#coveredBytes += this.#writer.length();
    this.#writer.close();
    this.#writer = next;
    this.#index += 1;
  }

  async #write(): Promise<void> {
    try {
      const bytes = this.#snapshot();
      this.#erase = false;
      const covered = [...this.#covered];
      const coveredBytes = this.#coveredBytes;
      await replaceFile(this.#file, bytes);
      for (const journal of covered) rmSync(journal, { force: true });
      this.#covered = this.#covered.slice(covered.length);
      this.#coveredBytes -= coveredBytes;
      this.#checkpointed = performance.now();
      this.#advise(bytes.length);
    } catch (error) {
      this.#notBefore = performance.now() + RETRY_MS;
      const code = error instanceof Error && 'code' in error ? error.code : undefined;
      this.#notice(
        'error',
        { reason: code },
        'the database file could not be written; everything is in the journal, and the next checkpoint will be tried in 30 s',
      );
    }
  }

  #advise(bytes: number): void {
    if (bytes < ADVICE_BYTES || this.#advised) return;
    this.#advised = true;
    const megabytes = Math.round(bytes / 2 ** 20);
    this.#notice(
      'warn',
      { megabytes },
      'the embedded database is kept in memory and has grown large: set session.retention_days, or move to PostgreSQL (DATABASE_URL=postgres://…)',
    );
  }

  async close(): Promise<void> {
    await this.#running;
    if (this.#dirty()) await this.checkpoint();
    const empty = this.#covered.length === 0;
    this.#writer.close();
    if (empty) rmSync(this.#writer.file, { force: true });
    this.db.close();
    this.#lock.release();
  }
}

async function replaceFile(file: string, bytes: Uint8Array): Promise<void> {
  const aside = `${file}.checkpoint`;
  try {
    const handle = await open(aside, 'w');
    try {
      await handle.writeFile(bytes);
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch (error) {
    // On a full disk the journal needs the room.
    rmSync(aside, { force: true });
    throw error;
  }
  renameSync(aside, file);
  syncFolder(dirname(file));
}

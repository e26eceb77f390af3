import type { SqliteDatabase } from './database.ts';

const COMMIT_AFTER_MS = 1_000;
/** What a failure has to make again: records, and their characters, which stay in memory so long. */
const MOST_OPEN = 2_000;
const MOST_LENGTH = 8 * 2 ** 20;

/**
 * SQLite's transaction stays open over many batches, since each commit writes every page anew that they have touched. What is in it is durable
 * by the journal, so it can be made again.
 */
export class OpenTransaction {
  readonly #db: SqliteDatabase;
  readonly #replay: (db: SqliteDatabase, record: string) => void;
  #records: string[] = [];
  #length = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(db: SqliteDatabase, replay: (db: SqliteDatabase, record: string) => void) {
    this.#db = db;
    this.#replay = replay;
  }
  get active(): boolean {
    return this.#timer !== undefined;
  }
  begin(): void {
    if (this.active) return;
    this.#db.run('BEGIN');
    this.#timer = setTimeout(() => this.commit(), COMMIT_AFTER_MS);
  }
  /** These are in the journal. */
  keep(records: readonly string[]): void {
    this.#records.push(...records);
    for (const record of records) this.#length += record.length;
    if (this.#records.length >= MOST_OPEN || this.#length >= MOST_LENGTH) this.commit();
  }
  /** As it was before the present batch. */
  undo(): void {
    try {
      this.#db.run('ROLLBACK');
    } catch {
      // SQLite has done so already.
    }
    this.#db.run('BEGIN');
    for (const record of this.#records) this.#replay(this.#db, record);
  }
  commit(): void {
    if (!this.active) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#records = [];
    this.#length = 0;
    this.#db.run('COMMIT');
  }
}

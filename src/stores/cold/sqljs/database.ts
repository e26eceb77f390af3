import initSqlJs, { type Database, type Statement } from 'sql.js';
import type { Row } from '../sql/rows.ts';

/** sql.js writes a string into its memory letter by letter: a long one goes faster as bytes (UTF-8), and `CAST(… AS TEXT)` makes it a text. */
type Value = string | number | null | Uint8Array;

export interface SqliteDatabase {
  all(sql: string, values?: readonly Value[]): Row[];
  /** Gives the number of rows changed. */
  run(sql: string, values?: readonly Value[]): number;
  /** The bytes of a genuine SQLite file. Never within a transaction. */
  export(): Uint8Array;
  /** In bytes. */
  size(): number;
  close(): void;
}

/**
 * Durability is the journal's: SQLite itself works in memory, and its own rollback journal only serves to undo what failed. What is deleted
 * is overwritten, so that it is not in the next checkpoint's free pages. The file is in memory already: a large page cache would hold it twice.
 */
const PRAGMAS = 'PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY; PRAGMA secure_delete = ON; PRAGMA cache_size = -8192;';

export async function openDatabase(bytes: Uint8Array | undefined): Promise<SqliteDatabase> {
  const sql = await initSqlJs();
  return wrap(new sql.Database(bytes));
}

function wrap(database: Database): SqliteDatabase {
  const prepared = new Map<string, Statement>();
  const prepare = (sql: string): Statement => {
    let statement = prepared.get(sql);
    if (statement === undefined) {
      statement = database.prepare(sql.replace(/\$(\d+)/g, '?$1'));
      prepared.set(sql, statement);
    }
    return statement;
  };
  database.run(PRAGMAS);
  return {
    all(sql, values = []) {
      const statement = prepare(sql);
      const rows: Row[] = [];
      try {
        statement.bind([...values]);
        while (statement.step()) rows.push(statement.get() as Row);
      } finally {
        statement.reset();
      }
      return rows;
    },
    run(sql, values = []) {
      const statement = prepare(sql);
      try {
        statement.bind([...values]);
        statement.step();
      } finally {
        statement.reset();
      }
      return database.getRowsModified();
    },
    export() {
      // sql.js closes and reopens the database in here: its statements and pragmas are gone afterwards.
      prepared.clear();
      const bytes = database.export();
      database.run(PRAGMAS);
      return bytes;
    },
    size() {
      const [pages, bytes] = [database.exec('PRAGMA page_count'), database.exec('PRAGMA page_size')];
      return Number(pages[0]?.values[0]?.[0] ?? 0) * Number(bytes[0]?.values[0]?.[0] ?? 0);
    },
    close() {
      prepared.clear();
      database.close();
    },
  };
}

import type { ColdStore } from '../../../contracts/cold-store.ts';
import type { Environment, Log } from '../../../contracts/telemetry.ts';
import * as rows from '../sql/rows.ts';
import * as sql from '../sql/statements.ts';
import { encodeText } from '../sql/text.ts';
import type { Connections } from './connections.ts';
import { storeEach, toColumns } from './store-each.ts';

/** Reports and clean-ups look at many rows. */
export const LONG = { limitMs: 15_000 };

type Books = Pick<ColdStore, 'addToLedger' | 'readLedger' | 'writeTraces' | 'readTrace' | 'listTraces' | 'deleteTracesBefore'>;

export function ledgerAndTraces(
  query: Connections['query'],
  transaction: Connections['transaction'],
  { log, environment }: { log: Log; environment: Environment },
): Books {
  return {
    async addToLedger(batchId, ledgerRows) {
      const refused = await transaction(async (ask) => {
        if ((await ask(sql.CLAIM_BATCH, [encodeText(batchId), environment.now()])).count === 0) return 0;
        return storeEach(rows.mergeLedger(ledgerRows), ask, async (some) => ask(sql.ADD_MANY_TO_LEDGER, toColumns(some.map(rows.ledgerValues))));
      });
      if (refused > 0) log.error({ rows: refused }, 'ledger rows were refused by the database and are lost; the others are stored');
    },
    async readLedger(asked) {
      rows.checkLedgerColumns(asked.by);
      const select = sql.readLedger(asked, encodeText);
      return (await query(select.sql, select.values, LONG)).rows.map(rows.toLedgerRow);
    },
    async writeTraces(traces) {
      if (traces.length === 0) return;
      const refused = await transaction((ask) => storeEach(traces, ask, async (some) => ask(sql.WRITE_TRACES, toColumns(some.map(rows.traceValues)))));
      if (refused > 0) log.error({ traces: refused }, 'traces were refused by the database and are lost; the others are stored');
    },
    async readTrace(id) {
      const record = (await query(sql.READ_TRACE, [encodeText(id)])).rows[0]?.[0];
      return record === undefined ? undefined : rows.toTrace(record);
    },
    async listTraces(asked) {
      const after = rows.decodeCursor(asked.cursor, 2);
      const select = sql.listTraces({ ...asked, limit: asked.limit + 1 }, after === undefined ? undefined : [Number(after[0]), String(after[1])], encodeText);
      const found = await query(select.sql, select.values, LONG);
      return rows.toPage(
        found.rows,
        asked.limit,
        (row) => rows.toTrace(row[2]),
        (row) => [Number(row[0]), String(row[1])],
      );
    },
    deleteTracesBefore: async (at) => (await query(sql.DELETE_TRACES, [at], LONG)).count,
  };
}

import { type ColdStore, VersionConflict } from '../../contracts/cold-store.ts';
import { StoreUnavailable } from '../../contracts/hot-store.ts';
import { recapKey } from '../../contracts/recap-key.ts';
import { appendTurnQuery } from './postgres/append-turn.ts';
import { type Connections, connectTo } from './postgres/connections.ts';
import { LONG, ledgerAndTraces } from './postgres/ledger-and-traces.ts';
import { migrate } from './postgres/migrate.ts';
import type { ColdStoreOptions } from './sql/options.ts';
import * as rows from './sql/rows.ts';
import * as sql from './sql/statements.ts';
import { createSweep } from './sql/sweep.ts';
import { decodeText, encodeText } from './sql/text.ts';

const SWEEP_STEP = 200;

/** PostgreSQL: for several instances, and for more than fits into memory. */
export default function create({ url, log, metrics, environment }: ColdStoreOptions): ColdStore {
  const up = metrics.gauge('hermes_store_up', 'Whether a store answers (1) or is away (0).', ['store']);
  let connections: Connections | undefined;
  const query: Connections['query'] = (...given) => connections?.query(...given) ?? Promise.reject(new StoreUnavailable('postgres'));
  const transaction: Connections['transaction'] = (work) => connections?.transaction(work) ?? Promise.reject(new StoreUnavailable('postgres'));
  const sweep = createSweep(environment, async (now, batchesBefore) => {
    await query(sql.SWEEP_VALUES, [now], LONG);
    await query(sql.SWEEP_BATCHES, [batchesBefore], LONG);
  });
  const deleteSession = (project: string, session: string): Promise<boolean> =>
    transaction(async (ask) => {
      let deleted = 0;
      for (const statement of sql.DELETE_SESSION) deleted = (await ask(statement, [project, session])).count;
      await ask(sql.DELETE_VALUE, [encodeText(recapKey(decodeText(project), decodeText(session)))]);
      return deleted > 0;
    });
  return {
    name: 'postgres',
    async open() {
      const made = await connectTo({ url, log, up, migrate });
      await made.open().catch(async (error: unknown) => {
        await made.close();
        throw error;
      });
      connections = made;
      sweep.start();
    },
    async readSession(project, session, limit, at) {
      const asked = [encodeText(project), encodeText(session), limit];
      const found = await (at === undefined ? query(sql.READ_SESSION, asked) : query(sql.READ_SESSION_AT, [...asked, at]));
      return rows.toColdSession(found.rows);
    },
    async sessionVersion(project, session) {
      const found = await query(sql.SESSION_VERSION, [encodeText(project), encodeText(session)]);
      return Number(found.rows[0]?.[0] ?? 0);
    },
    async appendTurn(turn) {
      const row = rows.toTurnRow(turn);
      const { text, values } = appendTurnQuery(row);
      const moved = await query(text, values);
      if (moved.rows[0] !== undefined) return Number(moved.rows[0][0]);
      const same = await query(sql.SAME_TURN, [row.project, row.session, row.baseVersion + 1, row.requestId, row.at]);
      if (same.rows[0] === undefined) throw new VersionConflict(turn.session);
      return row.baseVersion + 1;
    },
    async findTurn(project, session, mark) {
      const name = [encodeText(project), encodeText(session)];
      const [found] = (await query(sql.FIND_TURN, [...name, encodeText(mark)])).rows;
      return found && rows.toFoundTurn(found, (await query(sql.MESSAGES_OF_TURN, [...name, Number(found[0])])).rows);
    },
    async findResponse(project, session, { id, owner }) {
      const name = [encodeText(project), encodeText(session)];
      const [found] = (await query(sql.FIND_RESPONSE, [...name, encodeText(id), encodeText(owner)])).rows;
      return found && rows.toFoundResponse(found[0], found[1], (await query(sql.WHOLE_TURN, [...name, Number(found[0])])).rows);
    },
    async turnOfResponse(project, session, id) {
      const [found] = (await query(sql.TURN_OF_RESPONSE, [encodeText(project), encodeText(session), encodeText(id)])).rows;
      return found && rows.toPlace(found);
    },
    deleteTurn: (project, session, version) =>
      transaction(async (ask) => {
        const turn = [encodeText(project), encodeText(session), version];
        const [moveOn, ...rest] = sql.DELETE_TURN;
        if ((await ask(moveOn, turn)).count === 0) return false;
        for (const statement of rest) await ask(statement, turn);
        await ask(sql.DELETE_EMPTY_SESSION, turn.slice(0, 2));
        return true;
      }),
    async listSessions({ project, limit, cursor }) {
      const own = project === undefined ? [] : [encodeText(project)];
      const after = rows.decodeCursor(cursor, 3 - own.length);
      const found = await query(sql.listSessionsSql(own.length > 0, after !== undefined), [limit + 1, ...own, ...(after ?? [])], LONG);
      return rows.toPage(found.rows, limit, rows.toSummary, (row) => [Number(row[6]), ...(own.length > 0 ? [] : [String(row[0])]), String(row[1])]);
    },
    deleteSession: (project, session) => deleteSession(encodeText(project), encodeText(session)),
    async deleteSessionsBefore(at) {
      let deleted = 0;
      for (;;) {
        const old = (await query(sql.OLD_SESSIONS, [at, SWEEP_STEP], LONG)).rows;
        for (const [project, session] of old) if (await deleteSession(String(project), String(session))) deleted += 1;
        if (old.length < SWEEP_STEP) return deleted;
      }
    },
    async getValue(key) {
      const value = (await query(sql.GET_VALUE, [encodeText(key), environment.now()])).rows[0]?.[0];
      return value === undefined ? undefined : decodeText(String(value));
    },
    async setValue(key, value, expiresAt, ifAbsent = false) {
      const values = [encodeText(key), encodeText(value), expiresAt ?? null, sweep.position()];
      if (!ifAbsent) return (await query(sql.SET_VALUE, values)).count > 0;
      // Sent twice, the second would find what the first has set.
      return (await query(sql.SET_VALUE_IF_ABSENT, [...values, environment.now()], { repeatable: false })).count > 0;
    },
    async deleteValue(key) {
      await query(sql.DELETE_VALUE, [encodeText(key)]);
    },
    async listValues(prefix, limit) {
      const from = encodeText(prefix);
      const found = await query(sql.LIST_VALUES, [from, rows.prefixEnd(from), environment.now(), limit], LONG);
      return found.rows.map(([key, value]) => ({ key: decodeText(String(key)), value: decodeText(String(value)) }));
    },
    ...ledgerAndTraces(query, transaction, { log, environment }),
    healthy: () =>
      query('SHOW transaction_read_only')
        .then(({ rows: [row] }) => row?.[0] === 'off')
        .catch(() => false),
    async close() {
      sweep.stop();
      await connections?.close();
    },
  };
}

import type { Pool, PoolClient } from 'pg';
import { StoreUnavailable } from '../../../contracts/hot-store.ts';
import type { Gauge, Log } from '../../../contracts/telemetry.ts';
import { Gate } from '../../gate.ts';
import { withLimit } from '../../time-limit.ts';
import type { Row } from '../sql/rows.ts';

const POOL_SIZE = 10;
const CONNECT_MS = 1_500;
/** One query of a turn. Reports may take longer. */
const QUERY_MS = 2_000;
const TRANSACTION_MS = 15_000;
const MIGRATE_MS = 60_000;
const PROBE_EVERY_MS = 300;

interface Result {
  rows: Row[];
  count: number;
}
interface QueryOptions {
  limitMs?: number;
  /** It may be sent a second time when its connection broke under it. */
  repeatable?: boolean;
}
export interface Connections {
  query(text: string, values?: readonly unknown[], options?: QueryOptions): Promise<Result>;
  transaction<T>(work: (query: (text: string, values?: readonly unknown[]) => Promise<Result>) => Promise<T>): Promise<T>;
  /** The first contact. Rejects only on what waiting cannot mend: credentials, a missing database, a newer schema. */
  open(): Promise<void>;
  close(): Promise<void>;
}
export interface ConnectionsOptions {
  url: string;
  log: Log;
  up: Gauge;
  /** Runs before anything else on a server that has just come. */
  migrate(client: PoolClient): Promise<void>;
}

/** Classes of SQLSTATE: connection, operator intervention (shutdown), too many connections, system error, read-only transaction. */
const AWAY = /^(08|57P|53|58|XX|25006)/;
/** Wrong credentials, no such database or role, no right to it. */
const HOPELESS = /^(28|3D|42501)/;

function stateOf(error: unknown): string | undefined {
  return error instanceof Error && 'severity' in error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
function meansAway(error: unknown): boolean {
  const state = stateOf(error);
  return state === undefined ? !(error instanceof StoreUnavailable) : AWAY.test(state);
}
function reasonOf(error: unknown): string {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code;
  return error instanceof Error && error.message.includes('timeout') ? 'timeout' : 'connection lost';
}
export class SchemaError extends Error {}

export async function connectTo(options: ConnectionsOptions): Promise<Connections> {
  // The client library is only loaded where there is a PostgreSQL to talk to.
  const { default: pg } = await import('pg');
  const pool = new pg.Pool({
    connectionString: options.url,
    max: POOL_SIZE,
    connectionTimeoutMillis: CONNECT_MS,
    idleTimeoutMillis: 60_000,
    keepAlive: true,
    application_name: 'hermes',
  });
  return new PooledConnections(pool, options);
}

class PooledConnections implements Connections {
  readonly #pool: Pool;
  readonly #gate: Gate;
  readonly #migrate: (client: PoolClient) => Promise<void>;
  /** Prepared once a connection, under a short name of its own. */
  readonly #names = new Map<string, string>();
  #migrated = false;

  constructor(pool: Pool, { log, up, migrate }: ConnectionsOptions) {
    this.#pool = pool;
    this.#migrate = migrate;
    this.#gate = new Gate({
      store: 'postgres',
      words: { down: 'PostgreSQL does not answer; turns that cannot be made durable are refused until it does', up: 'PostgreSQL answers again' },
      log,
      up,
      limitMs: CONNECT_MS + QUERY_MS,
      probeEveryMs: PROBE_EVERY_MS,
      meansAway: (error) => meansAway(error) && !this.#crowded(error),
      reasonOf,
      probe: () => this.#probe(),
      reconnect: () => {},
    });
    // An idle connection that the server closed: the pool has dropped it already.
    pool.on('error', () => {});
    // One that is lost with a query on it says so twice: to the query, and as an event that would end the process where nobody listens.
    pool.on('connect', (client) => void client.on('error', () => {}));
  }

  async #probe(): Promise<void> {
    const client = await this.#pool.connect();
    try {
      if (this.#migrated) await withLimit(client.query('SELECT 1'), QUERY_MS);
      else await withLimit(this.#migrate(client), MIGRATE_MS);
      this.#migrated = true;
      client.release();
    } catch (error) {
      client.release(true);
      throw error;
    }
  }

  async open(): Promise<void> {
    try {
      await this.#gate.probe();
    } catch (error) {
      if (error instanceof SchemaError || HOPELESS.test(stateOf(error) ?? '')) throw error;
      this.#gate.goDown(reasonOf(error));
    }
  }

  async query(text: string, values: readonly unknown[] = [], { limitMs = QUERY_MS, repeatable = true }: QueryOptions = {}): Promise<Result> {
    const once = (): Promise<Result> => this.#onClient((client) => this.#send(client, text, values, limitMs));
    return this.#ask(async () => {
      try {
        return await once();
      } catch (error) {
        // A connection that a restart left dead says so only when it is used.
        if (!repeatable || !brokeUnder(error)) throw error;
        return once();
      }
    }, CONNECT_MS + limitMs);
  }

  transaction<T>(work: (query: (text: string, values?: readonly unknown[]) => Promise<Result>) => Promise<T>): Promise<T> {
    return this.#ask(
      () =>
        this.#onClient(async (client) => {
          await this.#send(client, 'BEGIN', [], QUERY_MS);
          try {
            const value = await work((text, values = []) => this.#send(client, text, values, QUERY_MS));
            await this.#send(client, 'COMMIT', [], QUERY_MS);
            return value;
          } catch (error) {
            if (!meansAway(error)) await this.#send(client, 'ROLLBACK', [], QUERY_MS);
            throw error;
          }
        }),
      TRANSACTION_MS,
    );
  }

  async #ask<T>(command: () => Promise<T>, limitMs: number): Promise<T> {
    try {
      return await this.#gate.run(command, limitMs);
    } catch (error) {
      throw meansAway(error) ? new StoreUnavailable('postgres', error) : error;
    }
  }

  async #onClient<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect();
    try {
      const value = await work(client);
      client.release();
      return value;
    } catch (error) {
      // A connection on which an answer is still owed is of no use to the next.
      client.release(meansAway(error));
      throw error;
    }
  }

  async #send(client: PoolClient, text: string, values: readonly unknown[], limitMs: number): Promise<Result> {
    const name = this.#nameOf(text);
    const { rows, rowCount } = await withLimit(client.query<Row>({ name, text, values: [...values], rowMode: 'array' }), limitMs);
    return { rows, count: rowCount ?? 0 };
  }
  #nameOf(text: string): string {
    const name = this.#names.get(text) ?? `hermes_${this.#names.size + 1}`;
    this.#names.set(text, name);
    return name;
  }

  /** Every connection is busy: that is load, not an outage. */
  #crowded(error: unknown): boolean {
    return error instanceof Error && error.message.startsWith('timeout exceeded when trying to connect') && this.#pool.totalCount >= POOL_SIZE;
  }

  async close(): Promise<void> {
    this.#gate.close();
    await withLimit(this.#pool.end(), QUERY_MS).catch(() => {});
  }
}

function brokeUnder(error: unknown): boolean {
  const state = stateOf(error);
  if (state !== undefined) return state.startsWith('57P');
  return (
    error instanceof Error &&
    (('code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE')) || error.message.startsWith('Connection terminated unexpectedly'))
  );
}

import { type HotStore, StoreUnavailable } from '../../contracts/hot-store.ts';
import type { Environment, Log, Metrics } from '../../contracts/telemetry.ts';
import { Gate } from '../gate.ts';
import { withLimit } from '../time-limit.ts';
import { createBuckets } from './redis/buckets.ts';
import { type Client, createClient, gatherWrites, parseRedisUrl } from './redis/connection.ts';
import { meansAway, reasonOf } from './redis/failures.ts';
import { createLeases, type RunScript } from './redis/leases.ts';
import { APPEND_TURN, PUT_SESSION, READ_SESSION, type Script } from './redis/scripts.ts';
import { KnownSessions, toHead, toLine } from './redis/session-lines.ts';
import { createStaleKeys } from './redis/stale-keys.ts';

const LIMIT_MS = 300;
const PROBE_EVERY_MS = 200;

export interface RedisStoreOptions {
  /** `redis://`, `rediss://`, nodes of a Cluster joined by commas, or `redis+sentinel://host:port,host:port/name`. */
  url: string;
  keyPrefix: string;
  log: Log;
  metrics: Metrics;
  environment: Environment;
}

/**
 * The hot store that instances share. `create` returns at once: a Redis that is away is a warning, and its calls reject with
 * `StoreUnavailable` until it is there. In keys, braces are a Cluster's hash tag: whatever belongs to one name is on one node.
 */
export default function create({ url, keyPrefix, log, metrics, environment }: RedisStoreOptions): HotStore {
  const address = parseRedisUrl(url);
  const up = metrics.gauge('hermes_store_up', 'Whether a store answers (1) or is away (0).', ['store']);
  const stale = createStaleKeys(`${keyPrefix.replace(/[*?[\]\\]/g, '\\$&')}session:*`);
  const names = {
    session: (key: string): string => `${keyPrefix}session:{${key}}`,
    lease: (name: string): string => `${keyPrefix}lease:{${name}}`,
    value: (key: string): string => `${keyPrefix}value:{${key}}`,
  };
  const known = new KnownSessions();
  let client: Client | undefined;
  let closed = false;
  const connected = (): Client => {
    if (client === undefined) throw new StoreUnavailable('redis');
    gatherWrites(client);
    return client;
  };
  const gate = new Gate({
    store: 'redis',
    words: { down: 'Redis does not answer; sessions are read from the cold store until it does', up: 'Redis answers again and is used' },
    log,
    up,
    limitMs: LIMIT_MS,
    probeEveryMs: PROBE_EVERY_MS,
    meansAway,
    reasonOf,
    async probe() {
      // A write: a replica, or a server without memory, answers a PING as well.
      await withLimit(connected().set(`${keyPrefix}probe`, '1', 'PX', 10_000), LIMIT_MS);
      await stale.remove(connected());
      await leases.releaseOrphans((script, key, args) => evaluate(connected(), script, key, args));
    },
    reconnect: () => client?.disconnect(true),
  });
  const ask = async <T>(command: () => Promise<T>): Promise<T> => {
    try {
      return await gate.run(command);
    } catch (error) {
      throw error instanceof StoreUnavailable ? error : new StoreUnavailable('redis', error);
    }
  };
  const run: RunScript = (script, key, args) => ask(() => evaluate(connected(), script, key, args));
  const leases = createLeases(run, environment.uuid);
  /** What cannot be written is stale from now on. */
  const change = async <T>(key: string, command: () => Promise<T>): Promise<T> => {
    try {
      return await command();
    } catch (error) {
      stale.add(key);
      throw error;
    }
  };
  void createClient(address).then((made) => {
    if (closed) return;
    client = made;
    gate.connecting();
    made.on('error', (error: unknown) => gate.goDown(reasonOf(error)));
    made.on('close', () => gate.goDown('connection lost'));
    made.on('ready', () => gate.ready());
    made.connect().catch((error: unknown) => gate.goDown(reasonOf(error)));
  });

  return {
    name: 'redis',
    shared: true,
    get outages() {
      return gate.outages;
    },
    async getSession(key) {
      const mine = known.get(key);
      const found = await run(READ_SESSION, names.session(key), [mine?.stamp ?? '']);
      if (Array.isArray(found)) return known.parse(key, found);
      if (found !== null) return mine?.session;
      known.forget(key);
      return undefined;
    },
    async putSession(key, session, ttlSeconds) {
      const name = names.session(key);
      const list = [...session.messages.map(toLine), toHead(session, environment.uuid())];
      await change(name, () => run(PUT_SESSION, name, [session.version, wholeSeconds(ttlSeconds), ...list]));
    },
    async appendTurn(key, version, system, messages, maxMessages, ttlSeconds) {
      const name = names.session(key);
      const stamp = environment.uuid();
      const turn = { stamp, messages, lines: messages.map(toLine), head: toHead({ version, system }, stamp) };
      const list = [...turn.lines, turn.head];
      const before = await change(name, () => run(APPEND_TURN, name, [version, wholeSeconds(ttlSeconds), maxMessages, ...list]));
      known.add(key, before, { version, system }, turn, maxMessages);
    },
    async deleteSession(key) {
      const name = names.session(key);
      await change(name, () => ask(() => connected().unlink(name)));
      known.forget(key);
    },
    acquire: (name, ttlMs) => leases.acquire(names.lease(name), ttlMs),
    async get(key) {
      return (await ask(() => connected().get(names.value(key)))) ?? undefined;
    },
    async set(key, value, ttlMs, ifAbsent = false) {
      const [name, ms] = [names.value(key), Math.max(1, Math.ceil(ttlMs))];
      const set = (): Promise<'OK' | null> => (ifAbsent ? connected().set(name, value, 'PX', ms, 'NX') : connected().set(name, value, 'PX', ms));
      return (await ask(set)) === 'OK';
    },
    async delete(key) {
      const name = names.value(key);
      await change(name, () => ask(() => connected().unlink(name)));
    },
    ...createBuckets(keyPrefix, (command) => ask(() => command(connected()))),
    healthy: () => gate.healthy(),
    async close() {
      if (gate.healthy()) await leases.close();
      closed = true;
      gate.close();
      client?.disconnect();
    },
  };
}

const wholeSeconds = (seconds: number): number => Math.max(1, Math.ceil(seconds));

async function evaluate(client: Client, { sha, text }: Script, key: string, args: readonly (string | number)[]): Promise<unknown> {
  try {
    return await client.evalsha(sha, 1, key, ...args);
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
    return client.eval(text, 1, key, ...args);
  }
}

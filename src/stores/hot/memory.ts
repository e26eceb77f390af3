import { LRUCache } from 'lru-cache';
import type { StoredMessage } from '../../contracts/cold-store.ts';
import type { HotSession, HotStore, Lease } from '../../contracts/hot-store.ts';
import type { Environment, Log } from '../../contracts/telemetry.ts';
import { windowStart } from '../../wire/history-window.ts';

export interface MemoryStoreOptions {
  url?: string;
  keyPrefix: string;
  log: Log;
  environment: Environment;
  /** What the sessions may take; the least recently used go first. */
  maxSessions?: number;
  maxBytes?: number;
}
interface Kept {
  session: HotSession;
  bytes: number;
}

const MAX_SESSIONS = 100_000;
const MAX_VALUES = 200_000;
const MAX_BYTES = 256 * 1024 * 1024;
/** A message's object, fields and list slot, roughly. */
const MESSAGE_OVERHEAD = 200;

/** The hot store of one process. What it hands out is its own: callers copy before they change. */
export default function createMemoryStore(options: MemoryStoreOptions): HotStore {
  const { environment, maxSessions = MAX_SESSIONS, maxBytes = MAX_BYTES } = options;
  const clock = { perf: { now: () => environment.now() }, ttlResolution: 0 };
  // A least size each holds their number, too: `max` would allocate the room for all of them at the start, 20 MB.
  const sessions = new LRUCache<string, Kept>({
    ...clock,
    maxSize: maxBytes,
    sizeCalculation: (kept) => Math.max(kept.bytes, Math.ceil(maxBytes / maxSessions)),
  });
  const values = new LRUCache<string, { value: string }>({
    ...clock,
    maxSize: maxBytes,
    sizeCalculation: ({ value }, key) => Math.max(100 + 2 * (value.length + key.length), Math.ceil(maxBytes / MAX_VALUES)),
  });
  const leases = new Map<string, number>();
  let tokens = 0;
  const keep = (key: string, session: HotSession, bytes: number, ttlSeconds: number): void => {
    sessions.set(key, { session, bytes: Math.max(1, bytes) }, { ttl: ttlSeconds * 1000 });
  };

  return {
    name: 'memory',
    shared: false,
    async getSession(key) {
      return sessions.get(key, { updateAgeOnGet: true })?.session;
    },
    async putSession(key, session, ttlSeconds) {
      const known = sessions.peek(key);
      if (known && known.session.version > session.version) return;
      keep(key, session, sizeOf(session.system) + sizeOf(session.messages), ttlSeconds);
    },
    async appendTurn(key, version, system, messages, maxMessages, ttlSeconds) {
      const known = sessions.peek(key);
      if (known ? known.session.version !== version - 1 : version !== 1) {
        sessions.delete(key);
        return;
      }
      const before = known?.session.messages ?? [];
      const joined = before.concat(messages);
      const start = windowStart(joined, maxMessages);
      const renewed = known?.session.system === system ? 0 : sizeOf(system) - sizeOf(known?.session.system ?? []);
      const bytes = (known?.bytes ?? 0) + renewed + sizeOf(messages) - sizeOf(joined.slice(0, start));
      keep(key, { version, system, messages: start === 0 ? joined : joined.slice(start) }, bytes, ttlSeconds);
    },
    async deleteSession(key) {
      sessions.delete(key);
    },
    /** The holder lives in this process: the lease stands until it is released. */
    async acquire(name): Promise<Lease | undefined> {
      if (leases.has(name)) return undefined;
      tokens += 1;
      const token = tokens;
      leases.set(name, token);
      return {
        token,
        async release() {
          if (leases.get(name) === token) leases.delete(name);
        },
      };
    },
    async get(key) {
      return values.get(key)?.value;
    },
    async set(key, value, ttlMs, ifAbsent = false) {
      if (ifAbsent && values.has(key)) return false;
      values.set(key, { value }, { ttl: Math.max(1, ttlMs) });
      return true;
    },
    async delete(key) {
      values.delete(key);
    },
    healthy: () => true,
    async close() {
      sessions.clear();
      values.clear();
      leases.clear();
    },
  };
}

/** Each text counts twice: as it is, and as it is written for an upstream (`wire/recalled.ts`). */
function sizeOf(messages: readonly StoredMessage[]): number {
  let bytes = 0;
  for (const { message } of messages) {
    const { content, tool_calls } = message;
    bytes += MESSAGE_OVERHEAD + (typeof content === 'string' ? 4 * content.length : content ? 4 * JSON.stringify(content).length : 0);
    for (const call of tool_calls ?? []) bytes += MESSAGE_OVERHEAD + 4 * (call.function?.arguments ?? JSON.stringify(call)).length;
  }
  return bytes;
}

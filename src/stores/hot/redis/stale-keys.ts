import type { Client } from './connection.ts';

const MOST = 50_000;
const STEP = 500;

/**
 * Keys that could not be written or removed while Redis was away. What Redis still knows of them is old, so they are removed
 * before anybody reads again; the cold store has the truth. Too many to remember: all sessions are removed.
 */
export interface StaleKeys {
  add(key: string): void;
  remove(client: Client): Promise<void>;
}

export function createStaleKeys(sessionPattern: string): StaleKeys {
  const keys = new Set<string>();
  let all = false;
  return {
    add(key) {
      if (keys.size < MOST) keys.add(key);
      else all = true;
    },
    async remove(client) {
      if (all) await removeMatching(client, sessionPattern);
      all = false;
      while (keys.size > 0) {
        const some = [...keys].slice(0, STEP);
        await Promise.all(some.map((key) => client.unlink(key)));
        for (const key of some) keys.delete(key);
      }
    },
  };
}

async function removeMatching(client: Client, pattern: string): Promise<void> {
  const nodes = 'nodes' in client ? client.nodes('master') : [client];
  for (const node of nodes) {
    let cursor = '0';
    do {
      const [next, found] = await node.scan(cursor, 'MATCH', pattern, 'COUNT', STEP);
      await Promise.all(found.map((key) => node.unlink(key)));
      cursor = next;
    } while (cursor !== '0');
  }
}

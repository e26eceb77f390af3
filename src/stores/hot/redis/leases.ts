import type { Lease } from '../../../contracts/hot-store.ts';
import { ACQUIRE, RELEASE, RENEW, type Script } from './scripts.ts';

/** Runs a script through the gate. */
export type RunScript = (script: Script, key: string, args: readonly (string | number)[]) => Promise<unknown>;

const MOST_ORPHANS = 10_000;

export interface Leases {
  acquire(key: string, ttlMs: number): Promise<Lease | undefined>;
  /** Frees what was asked for but never confirmed: a request that Redis answers late would hold its name for nobody. */
  releaseOrphans(run: RunScript): Promise<void>;
  close(): Promise<void>;
}

export function createLeases(run: RunScript, uuid: () => string): Leases {
  const held = new Map<string, { key: string; timer: NodeJS.Timeout }>();
  const orphans = new Map<string, string>();
  const orphan = (holder: string, key: string): void => {
    if (orphans.size < MOST_ORPHANS) orphans.set(holder, key);
  };
  const release = async (holder: string): Promise<void> => {
    const lease = held.get(holder);
    if (lease === undefined) return;
    held.delete(holder);
    clearInterval(lease.timer);
    // Not confirmed: it is freed when Redis is back, or expires.
    await run(RELEASE, lease.key, [holder]).catch(() => orphan(holder, lease.key));
  };
  return {
    async acquire(key, ttlMs) {
      const holder = uuid();
      let token: unknown;
      try {
        token = await run(ACQUIRE, key, [holder, ttlMs]);
      } catch (error) {
        orphan(holder, key);
        throw error;
      }
      if (token === null) return undefined;
      const renew = (): void => void run(RENEW, key, [holder, ttlMs]).catch(() => {});
      const timer = setInterval(renew, Math.max(1, Math.floor(ttlMs / 3)));
      timer.unref();
      held.set(holder, { key, timer });
      return { token: Number(token), release: () => release(holder) };
    },
    async releaseOrphans(directly) {
      for (const [holder, key] of [...orphans]) {
        await directly(RELEASE, key, [holder]);
        orphans.delete(holder);
      }
    },
    async close() {
      await Promise.all([...held.keys()].map(release));
    },
  };
}

import type { ColdStore } from '../contracts/cold-store.ts';
import type { HotStore } from '../contracts/hot-store.ts';
import { recapKey } from '../contracts/recap-key.ts';
import type { Log } from '../contracts/telemetry.ts';
import { toSessionName } from './session-name.ts';

/** Deletes a session, hot and cold, and its summary; tells whether there was one. */
export async function forgetSession(
  { hot, cold, log }: { hot: Pick<HotStore, 'deleteSession'>; cold: Pick<ColdStore, 'deleteSession' | 'deleteValue'>; log: Log },
  project: string,
  session: string,
): Promise<boolean> {
  const { key } = toSessionName(project, session);
  const existed = await cold.deleteSession(project, session);
  await cold.deleteValue(recapKey(project, session));
  // Away: the store deletes it before it is used again.
  await hot.deleteSession(key).catch((thrown) => log.warn({ err: thrown }, 'a deleted session could not be deleted in the hot store yet'));
  return existed;
}

import type { ColdStore } from '../contracts/cold-store.ts';
import type { HotStore } from '../contracts/hot-store.ts';
import type { Environment, Log } from '../contracts/telemetry.ts';

export interface RepeatNamesDeps {
  hot: HotStore;
  cold: ColdStore;
  log: Log;
  environment: Environment;
}

/**
 * Where an SDK's repeat finds the request it repeats when that ran in another process or before a crash: caller and body to
 * request id. Written only where tools with side effects are on offer; elsewhere a second run does no harm.
 */
export class RepeatNames {
  readonly #deps: RepeatNamesDeps;

  constructor(deps: RepeatNamesDeps) {
    this.#deps = deps;
  }

  /** `durable`: the cold store may know one that no other process can know any more. */
  async find(key: string, durable: boolean): Promise<string | undefined> {
    const { hot, cold, log } = this.#deps;
    const away = (err: unknown): undefined => void log.debug({ err }, 'a repeat could not be looked up');
    const shared = hot.shared ? await hot.get(`repeat:${key}`).catch(away) : undefined;
    return shared ?? (durable ? await cold.getValue(`repeat:${key}`).catch(away) : undefined);
  }

  async share(key: string, id: string, seconds: number): Promise<void> {
    const { hot, log } = this.#deps;
    if (hot.shared) await hot.set(`repeat:${key}`, id, seconds * 1000).catch((err) => log.debug({ err }, 'a repeat would not be found by other instances'));
  }

  async keep(key: string, id: string, seconds: number): Promise<void> {
    await this.#deps.cold.setValue(`repeat:${key}`, id, this.#deps.environment.now() + seconds * 1000);
  }

  /** Its answer has arrived: the same body again is a new request. */
  async forget(key: string): Promise<void> {
    const { hot, cold } = this.#deps;
    await Promise.allSettled([hot.shared ? hot.delete(`repeat:${key}`) : undefined, cold.deleteValue(`repeat:${key}`)]);
  }
}

import { LRUCache } from 'lru-cache';
import type { ColdStore } from '../contracts/cold-store.ts';
import type { HotStore } from '../contracts/hot-store.ts';
import type { Environment, Log } from '../contracts/telemetry.ts';
import { Outcome } from './outcome.ts';

export interface OutcomesDeps {
  hot: HotStore;
  cold: ColdStore;
  log: Log;
  environment: Environment;
}

/** Ended requests: in this process within a byte limit, in the hot store for other instances, in the cold one when a restart must not forget. */
export class Outcomes {
  readonly #deps: OutcomesDeps;
  #memory: LRUCache<string, Outcome>;

  constructor(deps: OutcomesDeps) {
    this.#deps = deps;
    this.#memory = toCache(1);
  }

  /** A reload may change the limit; what is kept stays within it. */
  limit(maxBytes: number): void {
    if (this.#memory.maxSize === maxBytes) return;
    const before = this.#memory;
    this.#memory = toCache(maxBytes);
    this.#memory.load(before.dump());
  }

  get(key: string): Outcome | undefined {
    return this.#fresh(key, this.#memory.get(key));
  }

  async fromHot(key: string): Promise<Outcome | undefined> {
    return this.#adopt(key, await this.#deps.hot.get(toHotKey(key)));
  }

  async fromCold(key: string): Promise<Outcome | undefined> {
    return this.#adopt(key, await this.#deps.cold.getValue(toColdKey(key)));
  }

  /** `durable`: resolves when it survives a crash. */
  async keep(key: string, outcome: Outcome, durable: boolean): Promise<void> {
    const { hot, cold, log, environment } = this.#deps;
    if (outcome.size > this.#memory.maxSize) return;
    this.#memory.set(key, outcome);
    if (!hot.shared && !durable) return;
    const text = outcome.toText();
    const failed = (store: string) => (err: unknown) => log.warn({ err, store }, 'an outcome could not be kept');
    const shared = hot.shared ? hot.set(toHotKey(key), text, outcome.expiresAt - environment.now()).catch(failed('hot')) : undefined;
    const lasting = durable ? cold.setValue(toColdKey(key), text, outcome.expiresAt).catch(failed('cold')) : undefined;
    await Promise.all([shared, lasting]);
  }

  #adopt(key: string, text: string | undefined): Outcome | undefined {
    if (text === undefined) return undefined;
    const outcome = this.#fresh(key, Outcome.fromText(text));
    if (outcome && outcome.size <= this.#memory.maxSize) this.#memory.set(key, outcome);
    return outcome;
  }

  #fresh(key: string, outcome: Outcome | undefined): Outcome | undefined {
    if (outcome === undefined || outcome.expiresAt > this.#deps.environment.now()) return outcome;
    this.#memory.delete(key);
    return undefined;
  }
}

function toCache(maxSize: number): LRUCache<string, Outcome> {
  return new LRUCache({ maxSize, sizeCalculation: (outcome) => outcome.size });
}
function toHotKey(key: string): string {
  return `outcome:${key}`;
}
function toColdKey(key: string): string {
  return `outcome:${key}`;
}

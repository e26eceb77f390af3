import { LRUCache } from 'lru-cache';
import type { HotStore } from '../contracts/hot-store.ts';
import type { Environment, Log } from '../contracts/telemetry.ts';
import { KeptAnswer } from './kept-answer.ts';

/** One answer takes at most this part of the memory. */
const LARGEST_SHARE = 1 / 8;
/** Redis is shared with sessions: what is larger stays in this process. */
const LARGEST_SHARED = 1024 ** 2;

export interface KeptAnswersDeps {
  hot: HotStore;
  log: Log;
  environment: Environment;
}

/** Answers by key: in this process by bytes, the least recently used going first, and in the hot store where that is shared. An outage there loses hits, nothing else. */
export class KeptAnswers {
  readonly #deps: KeptAnswersDeps;
  #memory: LRUCache<string, KeptAnswer> | undefined;
  #maxBytes = 0;

  constructor(deps: KeptAnswersDeps) {
    this.#deps = deps;
  }

  /** A reload may change it; then what was kept goes. */
  limit(maxBytes: number): void {
    if (maxBytes === this.#maxBytes) return;
    this.#maxBytes = maxBytes;
    this.#memory = new LRUCache({ maxSize: maxBytes, maxEntrySize: this.largest, sizeCalculation: ({ size }) => size });
  }
  get largest(): number {
    return Math.max(1, Math.floor(this.#maxBytes * LARGEST_SHARE));
  }
  get shared(): boolean {
    const { hot } = this.#deps;
    return hot.shared && hot.healthy();
  }

  get(key: string, maxAgeMs: number): KeptAnswer | undefined {
    const kept = this.#memory?.get(key);
    return kept && this.#deps.environment.now() - kept.head.at < maxAgeMs ? kept : undefined;
  }

  async fromShared(key: string, maxAgeMs: number): Promise<KeptAnswer | undefined> {
    if (!this.shared) return undefined;
    try {
      const text = await this.#deps.hot.get(key);
      const kept = text === undefined ? undefined : KeptAnswer.fromText(text);
      if (kept === undefined || this.#deps.environment.now() - kept.head.at >= maxAgeMs) return undefined;
      this.#memory?.set(key, kept);
      return kept;
    } catch (err) {
      this.#deps.log.debug({ err }, 'kept answers cannot be read from the hot store');
      return undefined;
    }
  }

  /** Resolves when other instances can see it: whether they can. */
  async keep(key: string, kept: KeptAnswer, ttlSeconds: number): Promise<boolean> {
    this.#memory?.set(key, kept);
    if (!this.shared || kept.size > LARGEST_SHARED) return false;
    try {
      return await this.#deps.hot.set(key, kept.toText(), ttlSeconds * 1000);
    } catch (err) {
      this.#deps.log.debug({ err }, 'an answer was not kept in the hot store');
      return false;
    }
  }
}

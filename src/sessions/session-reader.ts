import { LRUCache } from 'lru-cache';
import type { ColdStore } from '../contracts/cold-store.ts';
import type { Config } from '../contracts/config.ts';
import type { HotSession, HotStore } from '../contracts/hot-store.ts';
import type { Log } from '../contracts/telemetry.ts';
import { windowStart } from '../wire/history-window.ts';
import type { SessionName } from './session-name.ts';
import { bare, EMPTY, type SessionState } from './session-state.ts';

const REMEMBERED = 100_000;

export interface SessionReaderDeps {
  hot: HotStore;
  cold: ColdStore;
  log: Log;
}

/** Reads hot, then cold; serves no state that cold has passed. */
export class SessionReader {
  readonly #deps: SessionReaderDeps;
  /**
   * Sessions whose hot state this process has found or made right, and the outage count at that time: after the hot store
   * was away (and after a start) its states may be old, for turns went to cold alone meanwhile.
   */
  readonly #right = new LRUCache<string, number>({ maxSize: REMEMBERED, sizeCalculation: () => 1 });
  #outages = 0;
  /** The last commit failed: no model is asked for a turn that could not be kept. */
  coldAway = false;

  constructor(deps: SessionReaderDeps) {
    this.#deps = deps;
  }

  async read(name: SessionName, config: Config): Promise<SessionState> {
    const max = config.session.max_history_messages;
    if (this.coldAway) {
      await this.#deps.cold.sessionVersion(name.project, name.session);
      this.coldAway = false;
    }
    const hot = await this.#readHot(name);
    if (hot) {
      const start = windowStart(hot.messages, max);
      return { version: hot.version, system: hot.system, messages: start === 0 ? hot.messages : hot.messages.slice(start), tier: 'hot' };
    }
    const state = await this.readCold(name, max);
    if (state.version > 0) await this.warm(name, state, config);
    return state;
  }

  /** `at`: as it stood after the turn of this version. */
  async readCold(name: SessionName, limit: number, at?: number): Promise<SessionState> {
    const cold = await this.#deps.cold.readSession(name.project, name.session, limit, at);
    if (cold === undefined) return EMPTY;
    const start = windowStart(cold.messages, limit, cold.total > cold.messages.length);
    const messages = cold.messages.slice(start);
    return { version: cold.version, system: cold.system, messages, sequences: messages.map((message) => message.sequence), tier: 'cold' };
  }

  /** Whatever hot holds, in place of a cold store that is away. */
  async readUnchecked(name: SessionName): Promise<SessionState> {
    const hot = await this.#deps.hot.getSession(name.key).catch(() => undefined);
    return hot ? { version: hot.version, system: hot.system, messages: hot.messages, tier: 'hot' } : EMPTY;
  }

  async warm(name: SessionName, state: SessionState, config: Config): Promise<void> {
    const messages = state.messages.map(bare);
    await this.toHot(name, () =>
      this.#deps.hot.putSession(name.key, { version: state.version, system: state.system, messages }, config.session.storage.hot_ttl_seconds),
    );
  }

  /** A write to hot, which may be away: what it missed is then looked for in cold. */
  async toHot(name: SessionName, write: () => Promise<void>): Promise<void> {
    const { outages } = this;
    try {
      await write();
      this.#right.set(name.key, outages);
    } catch (thrown) {
      this.#failed(thrown);
    }
  }

  get outages(): number {
    return this.#outages + (this.#deps.hot.outages ?? 0);
  }

  async #readHot(name: SessionName): Promise<HotSession | undefined> {
    const { hot } = this.#deps;
    const { outages } = this;
    let state: HotSession | undefined;
    try {
      state = await hot.getSession(name.key);
    } catch (thrown) {
      this.#failed(thrown);
      return undefined;
    }
    if (state === undefined || !this.#mustCheck(name.key)) return state;
    const version = await this.#deps.cold.sessionVersion(name.project, name.session);
    if (version === state.version) {
      this.#right.set(name.key, outages);
      return state;
    }
    // Deleted, or restored from a backup: what is newer than cold would not let itself be replaced.
    if (version < state.version) await hot.deleteSession(name.key).catch((thrown) => this.#failed(thrown));
    return undefined;
  }

  /**
   * A cold store that several instances share is asked every time: another instance may have been cut off from a hot store that is
   * well seen from here, and its turns are in cold alone. An embedded one has this process alone, which knows what it missed.
   */
  #mustCheck(key: string): boolean {
    const { hot, cold } = this.#deps;
    if (cold.name === 'postgres') return true;
    return hot.shared && this.#right.get(key) !== this.outages;
  }

  #failed(thrown: unknown): void {
    this.#outages += 1;
    this.#deps.log.debug({ err: thrown }, 'the hot store is away: sessions are read from cold');
  }
}

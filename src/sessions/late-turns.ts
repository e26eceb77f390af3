import { type ColdStore, type StoredMessage, type TurnRecord, VersionConflict } from '../contracts/cold-store.ts';
import { StoreUnavailable } from '../contracts/hot-store.ts';
import type { Log } from '../contracts/telemetry.ts';
import { sessionKey } from './session-name.ts';

const MAX_TURNS = 10_000;
const RETRY_MS = 1000;
const LOG_EVERY = 30;

/** Turns that were answered while cold was away (`session.durability: relaxed`): in memory alone until it is back. */
export class LateTurns {
  readonly #cold: ColdStore;
  readonly #log: Log;
  #turns: TurnRecord[] = [];
  #timer: NodeJS.Timeout | undefined;
  #flushing: Promise<void> | undefined;
  #tries = 0;

  constructor(cold: ColdStore, log: Log) {
    this.#cold = cold;
    this.#log = log;
  }

  /** False: there are too many already. */
  add(turn: TurnRecord): boolean {
    if (this.#turns.length >= MAX_TURNS) return false;
    if (this.#turns.length === 0)
      this.#log.warn({ durability: 'relaxed' }, 'the cold store is away: answered turns wait in memory and would be lost with this process');
    this.#turns.push(turn);
    this.#timer ??= setInterval(() => void this.flush(), RETRY_MS).unref();
    return true;
  }

  /** What of this session cold does not have yet. */
  of(key: string): TurnRecord[] {
    return this.#turns.length === 0 ? [] : this.#turns.filter((turn) => sessionKey(turn.project, turn.session) === key);
  }

  messagesOf(key: string): StoredMessage[] {
    return this.of(key).flatMap((turn) => turn.messages);
  }

  /** Stores what waits, oldest first, as far as it goes. */
  flush(): Promise<void> {
    this.#flushing ??= this.#flush().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  async #flush(): Promise<void> {
    const waiting = this.#turns.length;
    try {
      for (let turn = this.#turns[0]; turn; turn = this.#turns[0]) {
        await this.#store(turn);
        this.#turns.shift();
      }
    } catch (thrown) {
      this.#tries += 1;
      if (this.#tries % LOG_EVERY === 1) this.#log.warn({ err: thrown, turns: this.#turns.length }, 'turns still wait for the cold store');
      return;
    }
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#tries = 0;
    if (waiting > 0) this.#log.info({ turns: waiting }, 'the turns that waited are stored');
  }

  /** Another instance may have gone on meanwhile: a waiting turn is appended to whatever stands there. */
  async #store(turn: TurnRecord): Promise<void> {
    try {
      const baseVersion = await this.#cold.sessionVersion(turn.project, turn.session);
      await this.#cold.appendTurn({ ...turn, baseVersion });
    } catch (thrown) {
      if (thrown instanceof StoreUnavailable || thrown instanceof VersionConflict) throw thrown;
      // What the database refuses it would refuse for ever; it must not hold up the others.
      this.#log.error({ err: thrown }, 'a turn that waited was refused by the cold store and is lost');
    }
  }

  async close(): Promise<void> {
    await this.flush();
    clearInterval(this.#timer);
    if (this.#turns.length > 0) this.#log.error({ turns: this.#turns.length }, 'turns were never stored: the cold store is away');
  }
}

import type { ColdStore, LedgerRow } from '../contracts/cold-store.ts';
import type { ModelCall, SavedAnswer } from '../contracts/exchange.ts';
import type { LedgerSums } from '../contracts/ledger-counts.ts';
import type { Environment, Log } from '../contracts/telemetry.ts';
import { hourOf } from './calendar.ts';
import { addTo, type Booked, keyOf, sumsOfCall, sumsOfSaved, toLineText, toRow } from './ledger-row.ts';

export interface LedgerDeps {
  cold: Pick<ColdStore, 'name' | 'noteCall' | 'addToLedger'>;
  log: Log;
  environment: Environment;
}

/** At most this much is lost by a power cut, and by `kill -9` where the store does not note calls. The embedded store's journal makes many small writes cheap. */
const FLUSH_MS = { sqljs: 200, postgres: 1000 } as const;
const LONGEST_PAUSE_MS = 30_000;
/** A store that is away for long: beyond this many lines, users and sessions are no longer told apart; the money stays right. */
const MOST_ROWS = 50_000;
/** How often a store that is away is asked once more before the process ends. */
const LAST_TRIES = 5;
const LAST_PAUSE_MS = 500;

interface Batch {
  /** The same at every try: a batch whose answer got lost is not added twice. */
  id: string;
  rows: LedgerRow[];
}

/** Model calls, summed by hour, on their way into the cold store. Writes and exact reads come one after the other. */
export class Ledger {
  readonly #deps: LedgerDeps;
  readonly #flushMs: number;
  readonly #mostRows: number;
  #open = new Map<string, LedgerRow>();
  #openId: string;
  #unsent: Batch | undefined;
  #failures = 0;
  #timer: NodeJS.Timeout | undefined;
  #tail: Promise<unknown> = Promise.resolve();

  constructor(deps: LedgerDeps, { flushMs = FLUSH_MS[deps.cold.name], mostRows = MOST_ROWS }: { flushMs?: number; mostRows?: number } = {}) {
    this.#deps = deps;
    this.#flushMs = flushMs;
    this.#mostRows = mostRows;
    this.#openId = deps.environment.uuid();
  }

  add(call: ModelCall, timezone: string): void {
    this.#book(call, timezone, sumsOfCall(call));
  }

  addSaved(saved: SavedAnswer, timezone: string): void {
    this.#book({ ...saved, shadow: false }, timezone, sumsOfSaved(saved));
  }

  #book(call: Booked, timezone: string, added: LedgerSums): void {
    const hour = hourOf(call.startedAt, timezone);
    let text = toLineText(call, hour, call.user ?? '', call.session ?? '');
    let row = this.#open.get(text);
    const full = row === undefined && this.#open.size >= this.#mostRows;
    if (full) {
      text = toLineText(call, hour, '', '');
      row = this.#open.get(text);
    }
    if (row === undefined) {
      row = toRow({ ...keyOf(call, hour), ...(full && { user: '', session: '' }) }, added);
      this.#open.set(text, row);
    } else addTo(row, added);
    this.#deps.cold.noteCall?.(this.#openId, text, row, added);
    this.#schedule(this.#flushMs);
  }

  /** Everything booked so far is stored when it resolves, unless the store is away. Never rejects. */
  async flush(): Promise<void> {
    await this.exclusive(async () => undefined);
  }

  /** Runs when everything booked so far is stored and nothing is being written; lines that came since are `pending`. */
  exclusive<T>(read: () => Promise<T>): Promise<T> {
    const run = this.#tail.then(async () => {
      await this.#write();
      return read();
    });
    this.#tail = run.catch(() => undefined);
    return run;
  }

  /** Booked but not stored yet. */
  *pending(): Generator<LedgerRow> {
    if (this.#unsent) yield* this.#unsent.rows;
    yield* this.#open.values();
  }

  /** Stores what is left. */
  async close(): Promise<void> {
    for (let left = LAST_TRIES; left > 0; left--) {
      await this.flush();
      if (this.#unsent === undefined && this.#open.size === 0) break;
      await new Promise((resolve) => setTimeout(resolve, LAST_PAUSE_MS));
    }
    clearTimeout(this.#timer);
    const calls = [...this.pending()].reduce((sum, row) => sum + row.calls, 0);
    if (calls > 0) this.#deps.log.error({ calls }, 'the cold store does not answer: these model calls are missing in the books');
  }

  #schedule(ms: number): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.flush();
    }, ms).unref();
  }

  async #write(): Promise<void> {
    while (this.#unsent !== undefined || this.#open.size > 0) {
      if (this.#unsent === undefined) {
        this.#unsent = { id: this.#openId, rows: [...this.#open.values()] };
        this.#open = new Map();
        this.#openId = this.#deps.environment.uuid();
      }
      try {
        await this.#deps.cold.addToLedger(this.#unsent.id, this.#unsent.rows);
      } catch (err) {
        this.#failed(err);
        return;
      }
      if (this.#failures > 0) this.#deps.log.info({}, 'the books are stored again');
      this.#failures = 0;
      this.#unsent = undefined;
    }
  }

  #failed(err: unknown): void {
    if (this.#failures === 0) this.#deps.log.warn({ err }, 'the books could not be stored; they are kept and tried again');
    this.#schedule(Math.min(LONGEST_PAUSE_MS, this.#flushMs * 2 ** this.#failures));
    this.#failures = Math.min(20, this.#failures + 1);
  }
}

/** The same store, whose ledger holds everything that this process has booked. */
export function withBooks(cold: ColdStore, ledger: Ledger): ColdStore {
  return {
    ...cold,
    async readLedger(query) {
      await ledger.flush();
      return cold.readLedger(query);
    },
  };
}

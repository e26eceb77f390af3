import { StoreUnavailable } from '../contracts/hot-store.ts';
import type { Gauge, Log } from '../contracts/telemetry.ts';
import { withLimit } from './time-limit.ts';

export interface GateOptions {
  store: 'redis' | 'postgres';
  /** What people are told when it goes and when it comes back. */
  words: { down: string; up: string };
  log: Log;
  up: Gauge;
  /** For one command, and for one probe. */
  limitMs: number;
  probeEveryMs: number;
  /** Does this failure mean that the server cannot serve, whatever is asked? */
  meansAway(error: unknown): boolean;
  /** A word for the log: codes only, since messages hold addresses. */
  reasonOf(error: unknown): string;
  /** Asks the server for something, and puts right what went wrong meanwhile; resolves when it can be used. */
  probe(): Promise<unknown>;
  /** Nothing was answered for `STUCK_MS`: the connection is given up for a new one. */
  reconnect(): void;
}

const STUCK_MS = 3_000;

/**
 * The breaker before a server. The first command that is not answered in its time closes the gate: everybody else fails at once,
 * while probes ask until the server answers. One log line a change of state.
 */
export class Gate {
  /** How often the server went away. */
  outages = 0;
  readonly #options: GateOptions;
  #state: 'connecting' | 'up' | 'down' = 'connecting';
  #began: Promise<void>;
  #begin: () => void = () => {};
  #timer: NodeJS.Timeout | undefined;
  #probing = false;
  #answeredAt = performance.now();
  #closed = false;

  constructor(options: GateOptions) {
    this.#options = options;
    this.#began = new Promise((resolve) => {
      this.#begin = resolve;
    });
    this.#timer = setInterval(() => this.#tick(), options.probeEveryMs);
    this.#timer.unref();
  }

  /** The client is made: whoever came before its first verdict waits no longer than a command may. */
  connecting(): void {
    setTimeout(() => this.#state === 'connecting' && this.goDown('timeout'), this.#options.limitMs).unref();
  }

  healthy(): boolean {
    return this.#state === 'up';
  }

  async run<T>(command: () => Promise<T>, limitMs = this.#options.limitMs): Promise<T> {
    if (this.#state === 'connecting') await this.#began;
    if (this.#state !== 'up') throw new StoreUnavailable(this.#options.store);
    try {
      const value = await withLimit(command(), limitMs);
      this.#answeredAt = performance.now();
      return value;
    } catch (error) {
      if (this.#options.meansAway(error)) this.goDown(this.#options.reasonOf(error));
      throw error;
    }
  }

  goDown(reason: string): void {
    if (this.#closed || this.#state === 'down') return;
    this.#state = 'down';
    this.outages += 1;
    this.#options.up.set({ store: this.#options.store }, 0);
    this.#options.log.warn({ reason }, this.#options.words.down);
    this.#begin();
  }

  /** Asks now: the connection has just become ready. */
  ready(): void {
    this.probe().catch(() => {});
  }

  close(): void {
    this.#closed = true;
    this.#state = 'down';
    clearInterval(this.#timer);
    this.#begin();
  }

  #tick(): void {
    if (this.#state === 'up') return;
    if (performance.now() - this.#answeredAt > STUCK_MS) {
      this.#answeredAt = performance.now();
      this.#options.reconnect();
      return;
    }
    this.ready();
  }

  /** One question. Rejects when it is not answered; while another is under way it does nothing. */
  async probe(): Promise<void> {
    if (this.#probing || this.#closed || this.#state === 'up') return;
    this.#probing = true;
    try {
      await this.#options.probe();
      this.#answeredAt = performance.now();
      this.#comeUp();
    } finally {
      this.#probing = false;
    }
  }
  #comeUp(): void {
    if (this.#closed) return;
    const was = this.#state;
    this.#state = 'up';
    this.#options.up.set({ store: this.#options.store }, 1);
    if (was === 'down') this.#options.log.info({}, this.#options.words.up);
    this.#begin();
  }
}

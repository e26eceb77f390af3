import { StoreUnavailable } from '../../../contracts/hot-store.ts';
import type { Gauge, Log } from '../../../contracts/telemetry.ts';

const LIMIT_MS = 300;
const PROBE_EVERY_MS = 200;
/** A connection on which nothing was answered for so long is given up for a new one. */
const STUCK_MS = 3_000;
/** Replies that mean that the server cannot serve, whatever is asked. */
const AWAY = /^(LOADING|READONLY|CLUSTERDOWN|MASTERDOWN|OOM|MISCONF|NOAUTH|WRONGPASS|NOREPLICAS|BUSY)\b/;

export interface GateOptions {
  log: Log;
  up: Gauge;
  /** Asks the server for something; resolves when it can be used. */
  probe(): Promise<unknown>;
  /** Puts right what went wrong meanwhile, before anybody uses the store again. */
  recover(): Promise<void>;
  reconnect(): void;
}

/**
 * The breaker before Redis. A command has 300 ms. The first that passes it closes the gate: everybody else fails at once and reads
 * the cold store, while probes ask until the server answers. One log line a change of state.
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
    this.#timer = setInterval(() => this.#tick(), PROBE_EVERY_MS);
    this.#timer.unref();
  }

  /** The client is made: whoever came before its first verdict waits no longer than a command may. */
  connecting(): void {
    setTimeout(() => this.#state === 'connecting' && this.goDown('timeout'), LIMIT_MS).unref();
  }

  healthy(): boolean {
    return this.#state === 'up';
  }

  async run<T>(command: () => Promise<T>): Promise<T> {
    if (this.#state === 'connecting') await this.#began;
    if (this.#state !== 'up') throw new StoreUnavailable('redis');
    try {
      const value = await withLimit(command());
      this.#answeredAt = performance.now();
      return value;
    } catch (error) {
      if (meansAway(error)) this.goDown(reasonOf(error));
      throw new StoreUnavailable('redis', error);
    }
  }

  goDown(reason: string): void {
    if (this.#closed || this.#state === 'down') return;
    this.#state = 'down';
    this.outages += 1;
    this.#options.up.set({ store: 'redis' }, 0);
    this.#options.log.warn({ reason }, 'Redis does not answer; sessions are read from the cold store until it does');
    this.#begin();
  }

  /** Asks now: the connection has just become ready. */
  ready(): void {
    void this.#probe();
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
    void this.#probe();
  }

  async #probe(): Promise<void> {
    if (this.#probing || this.#closed || this.#state === 'up') return;
    this.#probing = true;
    try {
      await withLimit(this.#options.probe());
      this.#answeredAt = performance.now();
      await this.#options.recover();
      this.#comeUp();
    } catch (error) {
      if (this.#state === 'connecting' && meansAway(error) && reasonOf(error) !== 'not connected') this.goDown(reasonOf(error));
    } finally {
      this.#probing = false;
    }
  }
  #comeUp(): void {
    if (this.#closed) return;
    const was = this.#state;
    this.#state = 'up';
    this.#options.up.set({ store: 'redis' }, 1);
    if (was === 'down') this.#options.log.info({}, 'Redis answers again and is used');
    this.#begin();
  }
}

class LimitPassed extends Error {
  readonly code = 'timeout';
}

export function withLimit<T>(promise: Promise<T>, ms = LIMIT_MS): Promise<T> {
  return new Promise((resolve, reject) => {
    // When it was this process that stood still, the answer is already in the socket: the loop reads it before the second turn.
    const late = (): void => void setImmediate(() => setImmediate(() => reject(new LimitPassed(`no answer within ${ms} ms`))));
    const timer = setTimeout(late, ms);
    promise.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}

function isReply(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}
function meansAway(error: unknown): boolean {
  return !isReply(error) || AWAY.test(error.message);
}
/** A word for the log: codes only, since messages hold addresses. */
export function reasonOf(error: unknown): string {
  if (isReply(error)) return error.message.split(' ', 1)[0] ?? 'reply';
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code;
  return error instanceof Error && error.message.includes('enableOfflineQueue') ? 'not connected' : 'connection lost';
}

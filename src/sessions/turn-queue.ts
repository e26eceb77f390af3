import { HermesError } from '../contracts/errors.ts';
import type { Exchange } from '../contracts/exchange.ts';

type Leave = () => void;

/** One turn of a session at a time within this process, first come, first served. */
export class TurnQueue {
  /** Who waits behind the turn that runs. */
  readonly #waiting = new Map<string, (() => void)[]>();

  /** Resolves when it is this exchange's turn; rejects when it is cancelled first, and its place is free again. */
  enter(key: string, exchange: Pick<Exchange, 'onCancel'>, concurrency: 'serialize' | 'reject'): Promise<Leave> | Leave {
    const queue = this.#waiting.get(key);
    if (queue === undefined) {
      this.#waiting.set(key, []);
      return this.#leave(key);
    }
    if (concurrency === 'reject') throw busy();
    return new Promise((resolve, reject) => {
      const call = (): void => {
        forget();
        resolve(this.#leave(key));
      };
      queue.push(call);
      const forget = exchange.onCancel((reason) => {
        const place = queue.indexOf(call);
        if (place >= 0) queue.splice(place, 1);
        reject(reason);
      });
    });
  }

  #leave(key: string): Leave {
    let left = false;
    return () => {
      if (left) return;
      left = true;
      const next = this.#waiting.get(key)?.shift();
      if (next) next();
      else this.#waiting.delete(key);
    };
  }
}

export function busy(): HermesError {
  return new HermesError('session_busy', 'Another turn of this session is running; send this one again when it has ended.', {
    headers: { 'retry-after': '1' },
  });
}

import { HermesError } from '../contracts/errors.ts';

/** How many requests are served at once, of those that cost: chats and what is passed through. */
export class Admission {
  #inside = 0;

  /** Throws at once when `limit` are inside already: work that cannot be done is refused before anything is spent on it. 0 is no limit. */
  enter(limit: number): void {
    if (limit > 0 && this.#inside >= limit)
      throw new HermesError('overloaded', 'The gateway serves as many requests as it may (server.max_in_flight); try again in a moment.', {
        headers: { 'retry-after': '1' },
      });
    this.#inside++;
  }

  leave(): void {
    this.#inside--;
  }
}

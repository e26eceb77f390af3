import { HermesError } from '../contracts/errors.ts';
import type { Counter, Metrics } from '../contracts/telemetry.ts';
import type { LoopDelay } from './loop-delay.ts';

export interface AdmissionDeps {
  metrics: Metrics;
  loop: Pick<LoopDelay, 'meanMs'>;
  /** `server.max_event_loop_delay_ms` of the configuration in use; 0 is no limit. */
  maxDelayMs(): number;
}

/**
 * How many requests are served at once, of those that cost (chats and what is passed through), and whether there is time for another:
 * work that cannot be done is refused at once, before anything is spent on it, rather than all be served slowly.
 */
export class Admission {
  readonly #loop: AdmissionDeps['loop'];
  readonly #maxDelayMs: () => number;
  readonly #shed: Counter;
  #inside = 0;

  constructor({ metrics, loop, maxDelayMs }: AdmissionDeps) {
    this.#loop = loop;
    this.#maxDelayMs = maxDelayMs;
    this.#shed = metrics.counter('hermes_requests_shed_total', 'Requests refused at once because the gateway had enough to do.', ['reason']);
  }

  /** Throws when `limit` are inside already, or the event loop is late. 0 is no limit. */
  enter(limit: number): void {
    if (limit > 0 && this.#inside >= limit) this.#refuse('in_flight', 'The gateway serves as many requests as it may (server.max_in_flight)');
    const maxDelayMs = this.#maxDelayMs();
    if (maxDelayMs > 0 && this.#loop.meanMs() > maxDelayMs)
      this.#refuse('event_loop', 'The gateway has more to do than it has time for (server.max_event_loop_delay_ms)');
    this.#inside++;
  }

  leave(): void {
    this.#inside--;
  }

  #refuse(reason: string, why: string): never {
    this.#shed.inc({ reason });
    throw new HermesError('overloaded', `${why}; try again in a moment.`, { headers: { 'retry-after': '1' } });
  }
}

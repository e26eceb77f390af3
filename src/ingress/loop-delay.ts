import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';

/** How often the delay is sampled; each sample holds this much that is no delay. */
const RESOLUTION_MS = 10;
/** One long turn (a large body, a collection) is no overload: the mean over such a window is. */
const WINDOW_MS = 500;

/** How late the event loop is: what every request waits for, whatever it asks. Measured from the first time that somebody wants to know. */
export class LoopDelay {
  #histogram: IntervalHistogram | undefined;
  #timer: NodeJS.Timeout | undefined;
  #meanMs = 0;

  /** Mean of the last half second, in milliseconds. */
  meanMs(): number {
    if (this.#histogram === undefined) this.#begin();
    return this.#meanMs;
  }

  close(): void {
    clearInterval(this.#timer);
    this.#histogram?.disable();
  }

  #begin(): void {
    const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
    histogram.enable();
    this.#histogram = histogram;
    this.#timer = setInterval(() => {
      // A window without a sample is no sign of time: the loop was too late to take one.
      if (histogram.count === 0) return;
      this.#meanMs = Math.max(0, histogram.mean / 1e6 - RESOLUTION_MS);
      histogram.reset();
    }, WINDOW_MS).unref();
  }
}

/** How fast an old measurement is forgotten. */
const DECAY_MS = 10_000;
/** A failure counts as this slow at least: failing fast must not attract traffic. */
const FAILURE_MS = 1000;
/** Dearer than any measured cost. */
const UNKNOWN = 1e12;

/**
 * Peak EWMA, as in Finagle: a slower answer than expected counts at once, a faster one only bit by bit, and calls that are
 * still running multiply the cost. What nobody measures decays, so that a slow upstream is looked at again some time.
 */
export class PeakEwma {
  #cost = 0;
  #at = 0;
  #running = 0;
  #measured = false;

  begin(): void {
    this.#running++;
  }

  /** The call has ended, without a verdict on its speed. */
  end(): void {
    this.#running--;
  }

  observe(ms: number, now: number): void {
    const before = this.#decayed(now);
    this.#cost = ms >= before ? ms : before + ms * (1 - Math.exp(-Math.max(0, now - this.#at) / DECAY_MS));
    this.#at = now;
    this.#measured = true;
  }

  observeFailure(ms: number, now: number): void {
    this.observe(Math.max(ms, FAILURE_MS), now);
  }

  /** Lower is better. One that was never tried costs nothing until its first call is under way; then it waits for that call's answer. */
  cost(now: number): number {
    if (!this.#measured) return this.#running * UNKNOWN;
    return Math.max(this.#decayed(now), 0.01) * (this.#running + 1);
  }

  #decayed(now: number): number {
    return this.#cost * Math.exp(-Math.max(0, now - this.#at) / DECAY_MS);
  }
}

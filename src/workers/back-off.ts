const FIRST_MS = 200;
const LONGEST_MS = 30_000;
/** Who has lived that long did not end because of how it began. */
const SETTLED_MS = 60_000;

/** How long to wait before a worker that ended is replaced: not at all after a long life, ever longer when it ends again and again. */
export class BackOff {
  #failures = 0;

  next(livedMs: number): number {
    if (livedMs >= SETTLED_MS) this.#failures = 0;
    this.#failures++;
    return this.#failures === 1 ? 0 : Math.min(LONGEST_MS, FIRST_MS * 2 ** (this.#failures - 2));
  }
}

/** Decisions that count as now, and those before them that count as usual. */
const NEWEST = 200;
const BEFORE = 2_000;
/** Fewer of these say nothing about what is usual. */
const LEAST_BEFORE = 200;
/** The alarm: this much above the usual, and this many times it. */
const ABOVE = 0.1;
const TIMES = 1.5;

/** Raised, over, or nothing new. */
export type Drift = 'raised' | 'over' | undefined;

/**
 * The share of what only the default takes. It drifts when, of the newest 200 decisions, it is at least 10 points and half as
 * much again above what it was over the (up to) 2,000 before them; it is over when it is half-way back.
 */
export class ShareWatch {
  readonly #ring = new Uint8Array(NEWEST + BEFORE);
  #count = 0;
  #newest = 0;
  #before = 0;
  /** What was usual when the alarm was raised: later on the drift itself would become the usual. */
  #alarm: { usual: number; raisedAt: number } | undefined;

  add(caught: boolean): Drift {
    const value = caught ? 1 : 0;
    const size = this.#ring.length;
    const at = this.#count % size;
    if (this.#count >= size) this.#before -= this.#ring[at] as number;
    if (this.#count >= NEWEST) {
      const leaving = this.#ring[(this.#count - NEWEST) % size] as number;
      this.#newest -= leaving;
      this.#before += leaving;
    }
    this.#ring[at] = value;
    this.#newest += value;
    this.#count++;
    return this.#judge();
  }

  #judge(): Drift {
    const { share, usual } = this;
    if (share === undefined) return undefined;
    if (this.#alarm) {
      if (share > (this.#alarm.usual + this.#alarm.raisedAt) / 2) return undefined;
      this.#alarm = undefined;
      return 'over';
    }
    if (usual === undefined || share < usual + ABOVE || share < usual * TIMES) return undefined;
    this.#alarm = { usual, raisedAt: share };
    return 'raised';
  }

  /** Of the newest decisions; undefined before there is one. */
  get share(): number | undefined {
    return this.#count === 0 ? undefined : this.#newest / Math.min(this.#count, NEWEST);
  }
  /** Of those before them; undefined while there are too few. */
  get usual(): number | undefined {
    if (this.#alarm) return this.#alarm.usual;
    const before = Math.min(this.#count - NEWEST, BEFORE);
    return before < LEAST_BEFORE ? undefined : this.#before / before;
  }
  get drifting(): boolean {
    return this.#alarm !== undefined;
  }
}

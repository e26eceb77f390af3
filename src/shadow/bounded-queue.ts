/** Runs jobs in order, a few at once; what finds the queue full is refused. */
export class BoundedQueue {
  readonly #atOnce: number;
  readonly #maxWaiting: number;
  readonly #waiting: (() => Promise<void>)[] = [];
  #running = 0;
  #idle: (() => void)[] = [];

  constructor(atOnce: number, maxWaiting: number) {
    this.#atOnce = atOnce;
    this.#maxWaiting = maxWaiting;
  }

  /** False: full. `job` must not reject. */
  offer(job: () => Promise<void>): boolean {
    if (this.#running < this.#atOnce) {
      this.#run(job);
      return true;
    }
    if (this.#waiting.length >= this.#maxWaiting) return false;
    this.#waiting.push(job);
    return true;
  }

  idle(): Promise<void> {
    return this.#running === 0 ? Promise.resolve() : new Promise((resolve) => this.#idle.push(resolve));
  }

  #run(job: () => Promise<void>): void {
    this.#running++;
    void job().finally(() => {
      this.#running--;
      const next = this.#waiting.shift();
      if (next) this.#run(next);
      else if (this.#running === 0) for (const resolve of this.#idle.splice(0)) resolve();
    });
  }
}

import type { ColdStore } from '../contracts/cold-store.ts';
import type { RunLog } from '../contracts/exchange.ts';

/** Enough for any number of rounds that the configuration allows. */
const MOST_STEPS = 10_000;

/** A run's steps as values of the cold store, one a step, so that a claim is one atomic write. */
export class ColdRunLog implements RunLog {
  readonly #cold: ColdStore;
  readonly #prefix: string;
  readonly #expiresAt: number;
  readonly #first: () => Promise<unknown>;
  #written = false;

  /** `first` goes to the store beside the first step. `expiresAt`: Unix milliseconds. */
  constructor(cold: ColdStore, key: string, expiresAt: number, first: () => Promise<unknown>) {
    this.#cold = cold;
    this.#prefix = `run:${key}:`;
    this.#expiresAt = expiresAt;
    this.#first = first;
  }

  async read(): Promise<Map<string, string>> {
    const values = await this.#cold.listValues(this.#prefix, MOST_STEPS);
    return new Map(values.map(({ key, value }) => [key.slice(this.#prefix.length), value]));
  }

  async write(step: string, value: string): Promise<boolean> {
    const first = this.#written ? undefined : this.#first();
    this.#written = true;
    const [isNew] = await Promise.all([this.#cold.setValue(this.#prefix + step, value, this.#expiresAt, true), first]);
    return isNew;
  }

  readStep(step: string): Promise<string | undefined> {
    return this.#cold.getValue(this.#prefix + step);
  }
}

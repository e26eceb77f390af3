import type { ColdStore } from '../contracts/cold-store.ts';
import type { Environment, Log } from '../contracts/telemetry.ts';
import { isRecord } from '../wire/json.ts';
import type { Comparison } from './comparison.ts';

const PREFIX = 'shadow:comparisons:';
const KEEP_MS = 14 * 86_400_000;
const WRITE_EVERY_MS = 1_000;
/** What may wait for a store that is away; the oldest go first. */
const MAX_WAITING = 5_000;
/** Batches that a report reads; each holds a second's comparisons. */
const MAX_BATCHES = 20_000;

/** Comparisons in the cold store, written in batches: one durable write a second, not one a request. */
export class ComparisonLog {
  readonly #cold: Pick<ColdStore, 'setValue' | 'listValues'>;
  readonly #environment: Environment;
  readonly #log: Log;
  #waiting: Comparison[] = [];
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(cold: Pick<ColdStore, 'setValue' | 'listValues'>, environment: Environment, log: Log) {
    this.#cold = cold;
    this.#environment = environment;
    this.#log = log;
  }

  add(comparison: Comparison): void {
    this.#waiting.push(comparison);
    if (this.#waiting.length > MAX_WAITING) this.#waiting.shift();
    this.#timer ??= setTimeout(() => void this.flush(), WRITE_EVERY_MS).unref();
  }

  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  async #write(): Promise<void> {
    const batch = this.#waiting;
    if (batch.length === 0) return;
    this.#waiting = [];
    const now = this.#environment.now();
    const key = `${PREFIX}${String(now).padStart(15, '0')}:${this.#environment.uuid()}`;
    try {
      await this.#cold.setValue(key, JSON.stringify(batch), now + KEEP_MS);
    } catch (err) {
      this.#waiting = [...batch, ...this.#waiting].slice(-MAX_WAITING);
      this.#log.warn({ err, comparisons: batch.length }, 'shadow comparisons could not be stored; they will be tried again');
    }
  }

  /** Oldest first. */
  async read(): Promise<Comparison[]> {
    await this.flush();
    const batches = await this.#cold.listValues(PREFIX, MAX_BATCHES);
    return [...batches.flatMap(({ value }) => parseBatch(value)), ...this.#waiting];
  }
}

function parseBatch(value: string): Comparison[] {
  try {
    const parsed: unknown = JSON.parse(value);
    return Array.isArray(parsed) ? parsed.filter(isComparison) : [];
  } catch {
    return [];
  }
}
function isComparison(value: unknown): value is Comparison {
  return isRecord(value) && typeof value.live_route === 'string' && typeof value.candidate_route === 'string' && typeof value.at === 'number';
}

import type { Resemblance, RouteInput } from '../../contracts/matcher.ts';
import { EmbeddingFailure, type FailureReason } from './embedder.ts';
import { type Compared, ExampleMatrix } from './example-matrix.ts';
import type { VectorCache } from './vector-cache.ts';

interface Entry {
  rule: string;
  examples: readonly string[];
  topK: number;
}
/** One request's question: undefined when the service gave no vector. */
class Asked {
  readonly comparing: Promise<Compared | undefined>;
  settled = false;
  compared: Compared | undefined;

  constructor(comparing: Promise<Compared | undefined>) {
    this.comparing = comparing.then((compared) => {
      this.settled = true;
      this.compared = compared;
      return compared;
    });
  }
}
class Resembled implements Resemblance {
  readonly #compared: Compared;
  readonly #entry: number;
  readonly #topK: number;
  readonly #bestOfOthers: () => number | undefined;

  constructor(compared: Compared, entry: number, topK: number, bestOfOthers: () => number | undefined) {
    this.#compared = compared;
    this.#entry = entry;
    this.#topK = topK;
    this.#bestOfOthers = bestOfOthers;
  }
  reaches(least: number): boolean {
    return this.#compared.reaches(this.#entry, this.#topK, least);
  }
  get score(): number {
    return this.#compared.score(this.#entry, this.#topK);
  }
  get next(): number | undefined {
    return this.#bestOfOthers();
  }
}
export interface BankOptions {
  failed(reason: FailureReason): void;
  /** What of a question may be embedded. */
  veil?: (text: string) => string;
  /** What one request waits at most. */
  timeoutMs: number;
}

/** All examples of one generation's rules. The question is embedded once a request, whatever the number of rules by meaning. */
export class ExampleBank {
  readonly #cache: VectorCache;
  readonly #options: BankOptions;
  readonly #entries: Entry[] = [];
  #matrix: ExampleMatrix | undefined;
  #loading: Promise<ExampleMatrix> | undefined;

  constructor(cache: VectorCache, options: BankOptions) {
    this.#cache = cache;
    this.#options = options;
  }

  get size(): number {
    return this.#entries.length;
  }

  /** A promise for the first rule that is asked of a request; what it came to, for the others. */
  register(rule: string, examples: readonly string[], topK: number): (input: RouteInput) => Resemblance | undefined | Promise<Resemblance | undefined> {
    const index = this.#entries.push({ rule, examples, topK }) - 1;
    const answer = (compared: Compared | undefined) => compared && new Resembled(compared, index, topK, () => this.#bestOfOthers(compared, rule));
    return (input) => {
      const asked = this.#ask(input);
      return asked.settled ? answer(asked.compared) : asked.comparing.then(answer);
    };
  }

  /** Embeds the examples ahead of the first question; a service that is away now is asked again then. */
  warm(): void {
    if (this.#entries.length > 0) this.#load().catch((cause: unknown) => this.#options.failed(reasonOf(cause)));
  }

  /** Of the other rules' scores the greatest; only those that may be it are computed. */
  #bestOfOthers(compared: Compared, rule: string): number | undefined {
    const others: { index: number; topK: number; most: number }[] = [];
    let sure = Number.NEGATIVE_INFINITY;
    for (const [index, entry] of this.#entries.entries()) {
      if (entry.rule === rule) continue;
      const { least, most } = compared.bounds(index, entry.topK);
      others.push({ index, topK: entry.topK, most });
      sure = Math.max(sure, least);
    }
    const scores = others.filter(({ most }) => most >= sure).map(({ index, topK }) => compared.score(index, topK));
    return scores.length === 0 ? undefined : Math.max(...scores);
  }

  #ask(input: RouteInput): Asked {
    const known = input.memo.get(this);
    if (known instanceof Asked) return known;
    const asked = new Asked(this.#compare(input));
    input.memo.set(this, asked);
    return asked;
  }

  async #compare(input: RouteInput): Promise<Compared | undefined> {
    let timer: NodeJS.Timeout | undefined;
    const { timeoutMs } = this.#options;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new EmbeddingFailure('timeout', `no answer within ${timeoutMs} ms`)), timeoutMs);
    });
    try {
      const text = input.original.trim();
      const question = this.#cache.question(this.#options.veil?.(text) ?? text, { timeoutMs, signal: input.signal });
      const [vector, matrix] = await Promise.race([Promise.all([question, this.#load()]), late]);
      if (vector.length !== matrix.dimensions) throw new EmbeddingFailure('invalid', 'the vector has another length than those of the examples');
      return matrix.compare(vector);
    } catch (cause) {
      const reason = reasonOf(cause);
      if (reason !== 'aborted') this.#options.failed(reason);
      return undefined;
    } finally {
      clearTimeout(timer);
    }
  }

  /** One load at a time; a failed one is tried again by the next question. Its limit is longer: there can be many examples. */
  #load(): Promise<ExampleMatrix> {
    if (this.#matrix) return Promise.resolve(this.#matrix);
    this.#loading ??= this.#loadAll()
      .then((matrix) => {
        this.#matrix = matrix;
        return matrix;
      })
      .finally(() => {
        this.#loading = undefined;
      });
    return this.#loading;
  }

  async #loadAll(): Promise<ExampleMatrix> {
    const lists: (readonly Float32Array[])[] = [];
    for (const entry of this.#entries) lists.push(await this.#cache.list(entry.examples, Math.max(5_000, this.#options.timeoutMs)));
    return new ExampleMatrix(lists);
  }
}

function reasonOf(cause: unknown): FailureReason {
  return cause instanceof EmbeddingFailure ? cause.reason : 'invalid';
}

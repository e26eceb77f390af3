import type { Resemblance, RouteInput } from '../../contracts/matcher.ts';
import { EmbeddingFailure, type FailureReason } from './embedder.ts';
import { ExampleMatrix } from './example-matrix.ts';
import type { VectorCache } from './vector-cache.ts';

interface Entry {
  rule: string;
  examples: readonly string[];
  topK: number;
}
/** A question's vector against the matrix, each entry's score computed once. */
interface Asked {
  score(entry: number): number;
}
export interface BankOptions {
  failed(reason: FailureReason): void;
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

  register(rule: string, examples: readonly string[], topK: number): (input: RouteInput) => Promise<Resemblance | undefined> {
    const index = this.#entries.push({ rule, examples, topK }) - 1;
    return async (input) => {
      const asked = await this.#ask(input);
      return asked && this.#resemblance(asked, index, rule);
    };
  }

  /** Embeds the examples ahead of the first question; a service that is away now is asked again then. */
  warm(): void {
    if (this.#entries.length > 0) this.#load().catch((cause: unknown) => this.#options.failed(reasonOf(cause)));
  }

  #resemblance(asked: Asked, index: number, rule: string): Resemblance {
    const entries = this.#entries;
    return {
      score: asked.score(index),
      get next() {
        let next: number | undefined;
        for (const [other, entry] of entries.entries()) {
          if (entry.rule !== rule) next = Math.max(next ?? -1, asked.score(other));
        }
        return next;
      },
    };
  }

  #ask(input: RouteInput): Promise<Asked | undefined> {
    let asked = input.memo.get(this) as Promise<Asked | undefined> | undefined;
    if (!asked) {
      asked = this.#compare(input);
      input.memo.set(this, asked);
    }
    return asked;
  }

  async #compare(input: RouteInput): Promise<Asked | undefined> {
    let timer: NodeJS.Timeout | undefined;
    const { timeoutMs } = this.#options;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new EmbeddingFailure('timeout', `no answer within ${timeoutMs} ms`)), timeoutMs);
    });
    try {
      const question = this.#cache.question(input.original.trim(), { timeoutMs, signal: input.signal });
      const [vector, matrix] = await Promise.race([Promise.all([question, this.#load()]), late]);
      if (vector.length !== matrix.dimensions) throw new EmbeddingFailure('invalid', 'the vector has another length than those of the examples');
      const scores = matrix.compare(vector);
      return { score: (entry) => scores(entry, this.#entries[entry]?.topK ?? 1) };
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

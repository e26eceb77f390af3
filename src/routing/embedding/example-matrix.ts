import { createDotKernel, type DotKernel, kernelWidth } from './dot-kernel.ts';
import { EmbeddingFailure } from './embedder.ts';

/** One question against the examples. What it says is exact; most of the time it can say it from rough products alone. */
export interface Compared {
  /** Mean of the `topK` nearest examples of an entry. */
  score(entry: number, topK: number): number;
  /** Is that mean at least so much? */
  reaches(entry: number, topK: number, least: number): boolean;
  /** That mean lies within these. */
  bounds(entry: number, topK: number): Bounds;
}
export interface Bounds {
  least: number;
  most: number;
}

/** What the last bits of sums of floats may come to. */
const SLACK = 1e-6;

/**
 * Vectors of all examples, twice: as they are, and rounded to 8 bits with the length of what rounding took. By Cauchy and
 * Schwarz a product of rounded vectors is off by at most those lengths (about 0.015), so nearly every example is told to be
 * too far, or near enough, without its exact product; only those in between are computed.
 */
export class ExampleMatrix {
  readonly dimensions: number;
  readonly #exact: Float32Array;
  readonly #rounded: DotKernel;
  /** By row: what one step of its 8 bits is worth, the length of the rounded vector, and of what rounding took. */
  readonly #steps: Float64Array;
  readonly #lengths: Float64Array;
  readonly #losses: Float64Array;
  /** By entry: its first row; one more at the end. */
  readonly #starts: number[] = [0];

  constructor(lists: readonly (readonly Float32Array[])[]) {
    this.dimensions = lists[0]?.[0]?.length ?? 0;
    const vectors = lists.flat();
    for (const list of lists) this.#starts.push((this.#starts.at(-1) ?? 0) + list.length);
    const width = kernelWidth(this.dimensions);
    this.#exact = new Float32Array(vectors.length * this.dimensions);
    this.#rounded = createDotKernel(vectors.length, width);
    this.#steps = new Float64Array(vectors.length);
    this.#lengths = new Float64Array(vectors.length);
    this.#losses = new Float64Array(vectors.length);
    for (const [row, vector] of vectors.entries()) {
      if (vector.length !== this.dimensions) throw new EmbeddingFailure('invalid', 'the vectors of the examples have different lengths');
      this.#exact.set(vector, row * this.dimensions);
      const { step, length, loss } = roundInto(this.#rounded.rows.subarray(row * width, row * width + this.dimensions), vector);
      this.#steps[row] = step;
      this.#lengths[row] = length;
      this.#losses[row] = loss;
    }
  }

  compare(vector: Float32Array): Compared {
    const rough = this.#scan(vector);
    const exact = new Map<number, number>();
    const bounds = (entry: number, topK: number): Bounds => {
      const { from, to } = this.#rowsOf(entry);
      return { least: meanOfBest(rough.least, from, to, topK), most: meanOfBest(rough.most, from, to, topK) };
    };
    const score = (entry: number, topK: number): number => {
      let known = exact.get(entry);
      if (known === undefined) {
        known = this.#exactScore(entry, topK, vector, rough);
        exact.set(entry, known);
      }
      return known;
    };
    return {
      score,
      bounds,
      reaches(entry, topK, wanted) {
        const { least, most } = bounds(entry, topK);
        if (least >= wanted || most < wanted) return least >= wanted;
        return score(entry, topK) >= wanted;
      },
    };
  }

  /** Synchronous from the question's 8 bits to their sums: the kernel holds one question at a time. */
  #scan(vector: Float32Array): Rough {
    const { step, loss } = roundInto(this.#rounded.question, vector);
    const length = Math.sqrt(dot(vector, 0, vector));
    const sums = this.#rounded.sums();
    const least = new Float64Array(sums.length);
    const most = new Float64Array(sums.length);
    for (let row = 0; row < sums.length; row++) {
      const product = (sums[row] as number) * step * (this.#steps[row] as number);
      // |q·x − q̂·x̂| ≤ |q − q̂| |x̂| + |q| |x − x̂|
      const off = loss * (this.#lengths[row] as number) + length * (this.#losses[row] as number) + SLACK;
      least[row] = product - off;
      most[row] = product + off;
    }
    return { least, most };
  }

  /** Only rows that may be among the `topK` best are multiplied out. */
  #exactScore(entry: number, topK: number, vector: Float32Array, { least, most }: Rough): number {
    const { from, to } = this.#rowsOf(entry);
    const sure = bestOf(least, from, to, topK);
    const products: number[] = [];
    for (let row = from; row < to; row++) {
      if ((most[row] as number) >= sure) products.push(dot(this.#exact, row * this.dimensions, vector));
    }
    return meanOfBest(Float64Array.from(products), 0, products.length, topK);
  }

  #rowsOf(entry: number): { from: number; to: number } {
    const from = this.#starts[entry] ?? 0;
    return { from, to: this.#starts[entry + 1] ?? from };
  }
}

/** By row: the exact product lies within. */
interface Rough {
  least: Float64Array;
  most: Float64Array;
}

/** The vector as `step` times numbers from -127 to 127: their length, and that of what is lost by it. */
function roundInto(target: Int8Array, vector: Float32Array): { step: number; length: number; loss: number } {
  let largest = 0;
  for (let at = 0; at < vector.length; at++) largest = Math.max(largest, Math.abs(vector[at] as number));
  const step = largest / 127 || 1;
  let length = 0;
  let loss = 0;
  for (let at = 0; at < vector.length; at++) {
    const value = vector[at] as number;
    const rounded = Math.round(value / step);
    target[at] = rounded;
    length += (rounded * step) ** 2;
    loss += (value - rounded * step) ** 2;
  }
  return { step, length: Math.sqrt(length), loss: Math.sqrt(loss) };
}

function dot(rows: Float32Array, base: number, vector: Float32Array): number {
  let sum = 0;
  for (let at = 0; at < vector.length; at++) sum += (rows[base + at] as number) * (vector[at] as number);
  return sum;
}

/** The `count`-th greatest of the values in these rows. */
function bestOf(values: Float64Array, from: number, to: number, count: number): number {
  if (count > 1) return values.slice(from, to).sort()[Math.max(0, to - from - count)] ?? Number.NEGATIVE_INFINITY;
  let best = Number.NEGATIVE_INFINITY;
  for (let row = from; row < to; row++) if ((values[row] as number) > best) best = values[row] as number;
  return best;
}
function meanOfBest(values: Float64Array, from: number, to: number, topK: number): number {
  if (from >= to) return -1;
  if (topK <= 1) return bestOf(values, from, to, 1);
  const best = values
    .slice(from, to)
    .sort()
    .subarray(Math.max(0, to - from - topK));
  return best.reduce((sum, value) => sum + value, 0) / best.length;
}

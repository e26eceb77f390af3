import { EmbeddingFailure } from './embedder.ts';

/**
 * Vectors of all examples in one Float32Array. Each entry is a block of its own, stored by dimension: a question is zero in
 * most dimensions of the builtin vectors, and those are passed over; the others are read in one go.
 */
export class ExampleMatrix {
  readonly dimensions: number;
  readonly #values: Float32Array;
  /** By entry: its first row; one more at the end. */
  readonly #starts: number[] = [0];

  constructor(lists: readonly (readonly Float32Array[])[]) {
    this.dimensions = lists[0]?.[0]?.length ?? 0;
    let rows = 0;
    for (const list of lists) {
      rows += list.length;
      this.#starts.push(rows);
    }
    this.#values = new Float32Array(rows * this.dimensions);
    for (const [entry, list] of lists.entries()) this.#fill((this.#starts[entry] ?? 0) * this.dimensions, list);
  }

  #fill(base: number, list: readonly Float32Array[]): void {
    for (const [row, vector] of list.entries()) {
      if (vector.length !== this.dimensions) throw new EmbeddingFailure('invalid', 'the vectors of the examples have different lengths');
      for (const [dimension, value] of vector.entries()) this.#values[base + dimension * list.length + row] = value;
    }
  }

  /** Mean of the `topK` nearest examples of an entry; an entry is scanned once a question. */
  compare(question: Float32Array): (entry: number, topK: number) => number {
    const scores = new Map<number, number>();
    const weighted = weightsOf(question);
    return (entry, topK) => {
      let score = scores.get(entry);
      if (score === undefined) {
        score = meanOfBest(this.#products(entry, weighted), topK);
        scores.set(entry, score);
      }
      return score;
    };
  }

  /** Four dimensions at once: the sums are read and written a quarter as often. */
  #products(entry: number, { columns, weights }: Weighted): Float64Array {
    const start = this.#starts[entry] ?? 0;
    const rows = (this.#starts[entry + 1] ?? start) - start;
    const base = start * this.dimensions;
    const values = this.#values;
    const products = new Float64Array(rows);
    for (let at = 0; at < columns.length; at += 4) {
      const a = base + (columns[at] as number) * rows;
      const b = base + (columns[at + 1] as number) * rows;
      const c = base + (columns[at + 2] as number) * rows;
      const d = base + (columns[at + 3] as number) * rows;
      const wa = weights[at] as number;
      const wb = weights[at + 1] as number;
      const wc = weights[at + 2] as number;
      const wd = weights[at + 3] as number;
      for (let row = 0; row < rows; row++) {
        products[row] =
          (products[row] as number) +
          wa * (values[a + row] as number) +
          wb * (values[b + row] as number) +
          wc * (values[c + row] as number) +
          wd * (values[d + row] as number);
      }
    }
    return products;
  }
}

interface Weighted {
  columns: readonly number[];
  weights: readonly number[];
}
/** Where a vector is not zero, filled up to fours with weights of zero. */
function weightsOf(vector: Float32Array): Weighted {
  const columns: number[] = [];
  for (let column = 0; column < vector.length; column++) if (vector[column] !== 0) columns.push(column);
  while (columns.length % 4 !== 0) columns.push(-1);
  return { columns: columns.map((column) => Math.max(column, 0)), weights: columns.map((column) => (column < 0 ? 0 : (vector[column] as number))) };
}

function meanOfBest(values: Float64Array, topK: number): number {
  if (values.length === 0) return -1;
  const best = values.sort().subarray(Math.max(0, values.length - topK));
  return best.reduce((sum, value) => sum + value, 0) / best.length;
}

import { EmbeddingFailure } from './embedder.ts';

/** Vectors of all examples in one Float32Array, those of one rule side by side. */
export class ExampleMatrix {
  readonly dimensions: number;
  readonly #values: Float32Array;
  /** By entry: the first row; one more at the end. */
  readonly #starts: number[] = [0];

  constructor(lists: readonly (readonly Float32Array[])[]) {
    this.dimensions = lists[0]?.[0]?.length ?? 0;
    let rows = 0;
    for (const list of lists) {
      rows += list.length;
      this.#starts.push(rows);
    }
    this.#values = new Float32Array(rows * this.dimensions);
    let at = 0;
    for (const vector of lists.flat()) {
      if (vector.length !== this.dimensions) throw new EmbeddingFailure('invalid', 'the vectors of the examples have different lengths');
      this.#values.set(vector, at);
      at += this.dimensions;
    }
  }

  /** Mean of the `topK` nearest rows of an entry; an entry is scanned once a question. */
  compare(question: Float32Array): (entry: number, topK: number) => number {
    const scores = new Map<number, number>();
    const support = supportOf(question);
    return (entry, topK) => {
      let score = scores.get(entry);
      if (score === undefined) {
        score = this.#score(entry, topK, question, support);
        scores.set(entry, score);
      }
      return score;
    };
  }

  #score(entry: number, topK: number, question: Float32Array, support: Uint32Array | undefined): number {
    const best: number[] = [];
    for (let row = this.#starts[entry] ?? 0; row < (this.#starts[entry + 1] ?? 0); row++) {
      const product = support ? this.#sparseProduct(row, question, support) : this.#product(row, question);
      if (best.length < topK) best.push(product);
      else if (product > (best[topK - 1] ?? 0)) best[topK - 1] = product;
      else continue;
      best.sort((a, b) => b - a);
    }
    return best.length === 0 ? -1 : best.reduce((sum, value) => sum + value, 0) / best.length;
  }

  /** Four sums at once: one long chain of additions would wait for each. */
  #product(row: number, question: Float32Array): number {
    const values = this.#values;
    const { dimensions } = this;
    const base = row * dimensions;
    let a = 0;
    let b = 0;
    let c = 0;
    let d = 0;
    let index = 0;
    for (; index + 3 < dimensions; index += 4) {
      a += (values[base + index] as number) * (question[index] as number);
      b += (values[base + index + 1] as number) * (question[index + 1] as number);
      c += (values[base + index + 2] as number) * (question[index + 2] as number);
      d += (values[base + index + 3] as number) * (question[index + 3] as number);
    }
    for (; index < dimensions; index++) a += (values[base + index] as number) * (question[index] as number);
    return a + b + c + d;
  }

  #sparseProduct(row: number, question: Float32Array, support: Uint32Array): number {
    const base = row * this.dimensions;
    let sum = 0;
    for (let at = 0; at < support.length; at++) {
      const index = support[at] as number;
      sum += (this.#values[base + index] as number) * (question[index] as number);
    }
    return sum;
  }
}

/** The places where the vector is not zero, when these are few (a hashed short text): then only these are multiplied. */
function supportOf(vector: Float32Array): Uint32Array | undefined {
  const places: number[] = [];
  for (let index = 0; index < vector.length; index++) if (vector[index] !== 0) places.push(index);
  return places.length * 4 <= vector.length ? Uint32Array.from(places) : undefined;
}

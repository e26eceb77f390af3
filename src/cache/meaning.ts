import { LRUCache } from 'lru-cache';
import type { Question } from './cache-key.ts';

const MOST_A_SCOPE = 200;

interface Asked {
  vector: Float32Array;
  exact: string;
  /** Of the answer. */
  key: string;
}

/** Questions that were answered, by meaning; those of one scope only are compared. */
export class Meaning {
  readonly #scopes: LRUCache<string, Asked[]>;

  constructor(maxBytes: number) {
    this.#scopes = new LRUCache({
      maxSize: Math.max(1, maxBytes),
      sizeCalculation: (list) => 200 + list.reduce((sum, { vector, exact }) => sum + vector.byteLength + 2 * exact.length + 300, 0),
    });
  }

  /** The key of the nearest one's answer, when that is near enough. */
  find({ scope, exact }: Question, vector: Float32Array, threshold: number): string | undefined {
    let best: Asked | undefined;
    let nearest = threshold;
    for (const asked of this.#scopes.get(scope) ?? []) {
      if (asked.exact !== exact || asked.vector.length !== vector.length) continue;
      const score = product(asked.vector, vector);
      if (score < nearest) continue;
      nearest = score;
      best = asked;
    }
    return best?.key;
  }

  remember({ scope, exact }: Question, vector: Float32Array, key: string): void {
    const list = (this.#scopes.get(scope) ?? []).filter((asked) => asked.key !== key).slice(-(MOST_A_SCOPE - 1));
    this.#scopes.set(scope, [...list, { vector, exact, key }]);
  }
}

function product(one: Float32Array, two: Float32Array): number {
  let sum = 0;
  for (let index = 0; index < one.length; index++) sum += (one[index] ?? 0) * (two[index] ?? 0);
  return sum;
}

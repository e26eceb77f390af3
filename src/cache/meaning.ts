import { LRUCache } from 'lru-cache';
import type { Question } from './cache-key.ts';

const MOST_A_SCOPE = 200;
/** Numbers, codes and names in capitals: two questions that differ in one of them never mean the same, however near they are. */
const EXACT = /[\p{N}][\p{N}.,:/-]*|\b[A-Z]{2,}\b/gu;

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
      sizeCalculation: (list) => 200 + list.reduce((sum, { vector }) => sum + vector.byteLength + 300, 0),
    });
  }

  /** The key of the nearest one's answer, when that is near enough. */
  find({ scope, text }: Question, vector: Float32Array, threshold: number): string | undefined {
    const exact = exactIn(text);
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

  remember({ scope, text }: Question, vector: Float32Array, key: string): void {
    const list = (this.#scopes.get(scope) ?? []).filter((asked) => asked.key !== key).slice(-(MOST_A_SCOPE - 1));
    this.#scopes.set(scope, [...list, { vector, exact: exactIn(text), key }]);
  }
}

function exactIn(text: string): string {
  return (text.match(EXACT) ?? []).join(' ');
}

function product(one: Float32Array, two: Float32Array): number {
  let sum = 0;
  for (let index = 0; index < one.length; index++) sum += (one[index] ?? 0) * (two[index] ?? 0);
  return sum;
}

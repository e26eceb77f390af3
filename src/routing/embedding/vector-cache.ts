import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { ColdStore } from '../../contracts/cold-store.ts';
import type { Embedder } from './embedder.ts';

const BATCH = 64;
/** Services refuse longer inputs; what somebody wants stands at the beginning. */
const MAX_CHARACTERS = 4_000;

/** Vectors of one embedder by content: questions for a while, examples for good (in the cold store, when they cost a call). */
export class VectorCache {
  readonly #embedder: Embedder;
  readonly #cold: Pick<ColdStore, 'getValue' | 'setValue'> | undefined;
  readonly #questions = new LRUCache<string, Float32Array>({ max: 500 });
  readonly #lists = new LRUCache<string, readonly Float32Array[]>({ max: 2_000 });

  constructor(embedder: Embedder, cold: Pick<ColdStore, 'getValue' | 'setValue'> | undefined) {
    this.#embedder = embedder;
    this.#cold = embedder.remote ? cold : undefined;
  }

  async question(text: string, limit: { timeoutMs: number; signal: AbortSignal | undefined }): Promise<Float32Array> {
    const asked = text.slice(0, MAX_CHARACTERS);
    const known = this.#questions.get(asked);
    if (known) return known;
    const [vector] = await this.#embedder.embed([asked], limit);
    this.#questions.set(asked, vector as Float32Array);
    return vector as Float32Array;
  }

  /** One rule's examples. */
  async list(texts: readonly string[], timeoutMs: number): Promise<readonly Float32Array[]> {
    const key = createHash('sha256')
      .update(JSON.stringify([this.#embedder.identity, texts]))
      .digest('hex');
    const known = this.#lists.get(key) ?? (await this.#recall(key, texts.length));
    if (known) {
      this.#lists.set(key, known);
      return known;
    }
    const vectors: Float32Array[] = [];
    for (let from = 0; from < texts.length; from += BATCH) {
      const batch = texts.slice(from, from + BATCH).map((text) => text.slice(0, MAX_CHARACTERS));
      vectors.push(...(await this.#embedder.embed(batch, { timeoutMs })));
    }
    this.#lists.set(key, vectors);
    this.#keep(key, vectors);
    return vectors;
  }

  async #recall(key: string, count: number): Promise<Float32Array[] | undefined> {
    try {
      const stored = await this.#cold?.getValue(`embedding:${key}`);
      if (stored === undefined) return undefined;
      const bytes = Buffer.from(stored, 'base64');
      const dimensions = bytes.length / 4 / count;
      if (!Number.isInteger(dimensions) || dimensions === 0) return undefined;
      const all = Float32Array.from({ length: bytes.length / 4 }, (_, index) => bytes.readFloatLE(index * 4));
      return Array.from({ length: count }, (_, index) => all.subarray(index * dimensions, (index + 1) * dimensions));
    } catch {
      return undefined; // a store that is away costs one more call to the service
    }
  }

  #keep(key: string, vectors: readonly Float32Array[]): void {
    if (!this.#cold) return;
    const bytes = Buffer.concat(vectors.map((vector) => Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength)));
    this.#cold.setValue(`embedding:${key}`, bytes.toString('base64'), undefined).catch(() => undefined);
  }
}

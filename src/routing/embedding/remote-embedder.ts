import { createHash } from 'node:crypto';
import type { Environment } from '../../contracts/telemetry.ts';
import type { Embedder } from './embedder.ts';
import { EmbeddingFailure, toUnitVector } from './embedder.ts';

/**
 * A POST that gives the parsed JSON body. Rejects for a refused connection, a status that is not 2xx, a body that is not
 * JSON, and when `timeoutMs` have passed or `init.signal` is aborted.
 */
export type FetchJson = (
  url: string,
  init: { method: 'POST'; headers: Record<string, string>; body: string; signal: AbortSignal },
  timeoutMs: number,
) => Promise<unknown>;

export interface RemoteSettings {
  apiBase: string;
  modelName: string;
  apiKey: string | undefined;
}

/** Consecutive failures after which the service is left alone, and for how long. */
const FAILURE_THRESHOLD = 5;
const COOLDOWN_MS = 5_000;

/** Any service that speaks OpenAI's `/embeddings`. Source: OpenAI's OpenAPI description, `CreateEmbeddingResponse`. */
export function createRemoteEmbedder(settings: RemoteSettings, fetchJson: FetchJson | undefined, environment: Environment): Embedder {
  const url = `${settings.apiBase.replace(/\/+$/, '')}/embeddings`;
  const keyHash = createHash('sha256')
    .update(settings.apiKey ?? '')
    .digest('hex')
    .slice(0, 16);
  let failures = 0;
  let openUntil = 0;

  async function call(texts: readonly string[], timeoutMs: number, signal: AbortSignal | undefined): Promise<Float32Array[]> {
    if (!fetchJson) throw new EmbeddingFailure('refused', 'no embedding service can be reached from here');
    const stop = new AbortController();
    const onAbort = () => stop.abort(signal?.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(new EmbeddingFailure('timeout', `no answer within ${timeoutMs} ms`));
        stop.abort();
      }, timeoutMs);
    });
    const init = {
      method: 'POST' as const,
      headers: { 'content-type': 'application/json', ...(settings.apiKey !== undefined && { authorization: `Bearer ${settings.apiKey}` }) },
      body: JSON.stringify({ model: settings.modelName, input: texts }),
      signal: stop.signal,
    };
    try {
      return readVectors(await Promise.race([fetchJson(url, init, timeoutMs), late]), texts.length);
    } catch (cause) {
      if (cause instanceof EmbeddingFailure) throw cause;
      throw new EmbeddingFailure(signal?.aborted ? 'aborted' : 'refused', 'the embedding service could not be asked', cause);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    }
  }

  return {
    identity: `${url} ${settings.modelName} ${keyHash}`,
    remote: true,
    async embed(texts, { timeoutMs, signal }) {
      const now = environment.now();
      if (failures >= FAILURE_THRESHOLD) {
        if (now < openUntil) throw new EmbeddingFailure('open', 'the embedding service failed too often; it is left alone for a moment');
        // One probe: others that come while it runs find the breaker open.
        openUntil = now + COOLDOWN_MS;
      }
      try {
        const vectors = await call(texts, timeoutMs, signal);
        failures = 0;
        return vectors;
      } catch (cause) {
        if (cause instanceof EmbeddingFailure && cause.reason === 'aborted') throw cause;
        failures++;
        if (failures >= FAILURE_THRESHOLD) openUntil = environment.now() + COOLDOWN_MS;
        throw cause;
      }
    },
  };
}

function readVectors(body: unknown, count: number): Float32Array[] {
  const data = typeof body === 'object' && body !== null && 'data' in body ? body.data : undefined;
  if (!Array.isArray(data) || data.length !== count) throw new EmbeddingFailure('invalid', 'the answer has not one vector a text');
  const vectors: (Float32Array | undefined)[] = new Array(count).fill(undefined);
  for (const [position, entry] of data.entries()) {
    const item: unknown = entry;
    if (typeof item !== 'object' || item === null || !('embedding' in item)) break;
    const index = 'index' in item && typeof item.index === 'number' ? item.index : position;
    if (index in vectors) vectors[index] = readVector(item.embedding);
  }
  const complete = vectors.filter((vector) => vector !== undefined);
  if (complete.length !== count || complete.some((vector) => vector.length !== complete[0]?.length)) {
    throw new EmbeddingFailure('invalid', 'a vector of the answer is missing, has another length, or is not made of finite numbers');
  }
  return complete;
}

function readVector(value: unknown): Float32Array | undefined {
  if (typeof value === 'string') {
    const bytes = Buffer.from(value, 'base64');
    if (bytes.length === 0 || bytes.length % 4 !== 0) return undefined;
    return toUnitVector(Array.from({ length: bytes.length / 4 }, (_, index) => bytes.readFloatLE(index * 4)));
  }
  if (!Array.isArray(value) || value.length === 0 || !value.every((entry) => typeof entry === 'number')) return undefined;
  return toUnitVector(value);
}

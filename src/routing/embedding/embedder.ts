/** Texts to vectors of length 1. */
export interface Embedder {
  /** Of everything that its vectors depend on: vectors of one identity can be compared and kept. */
  readonly identity: string;
  /** Costs a call over the network: its vectors are worth keeping. */
  readonly remote: boolean;
  /** One vector a text, in order, all of one length. Rejects with an EmbeddingFailure. */
  embed(texts: readonly string[], limit: { timeoutMs: number; signal?: AbortSignal | undefined }): Promise<Float32Array[]>;
}

/** `invalid`: an answer that is none (empty, another length, NaN, zeros, HTML). `open`: not asked, it failed too often just now. */
export type FailureReason = 'timeout' | 'refused' | 'invalid' | 'open' | 'aborted';

export class EmbeddingFailure extends Error {
  readonly reason: FailureReason;
  constructor(reason: FailureReason, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'EmbeddingFailure';
    this.reason = reason;
  }
}

/** Scaled to length 1; undefined when it has none (zeros, NaN, infinity). */
export function toUnitVector(values: ArrayLike<number>): Float32Array | undefined {
  let sum = 0;
  for (let index = 0; index < values.length; index++) sum += (values[index] as number) ** 2;
  const length = Math.sqrt(sum);
  if (!Number.isFinite(length) || length < 1e-9) return undefined;
  const unit = new Float32Array(values.length);
  for (let index = 0; index < values.length; index++) unit[index] = (values[index] as number) / length;
  return unit;
}

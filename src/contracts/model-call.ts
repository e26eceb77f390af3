export interface TokenCounts {
  /** Includes the cached ones. */
  input: number;
  cached: number;
  cacheWrite: number;
  /** Includes the reasoning ones. */
  output: number;
  reasoning: number;
}

/** One finished upstream call: the only thing that accounting counts. Made by `send` alone, once a call however it ends. */
export interface ModelCall {
  id: string;
  /** The exchange's `x-request-id`. */
  traceId: string;
  requestId: string;
  /** Unix milliseconds. */
  startedAt: number;
  durationMs: number;
  /** Until the first content of a stream. */
  firstTokenMs: number | undefined;
  model: string;
  upstream: string;
  upstreamIdentity: string;
  provider: string;
  route: string;
  service: string;
  project: string;
  user: string | undefined;
  session: string | undefined;
  /** The principal's id. */
  key: string;
  outcome: 'ok' | 'error' | 'timeout' | 'rate_limited' | 'aborted';
  status: number | undefined;
  error: string | undefined;
  tokens: TokenCounts;
  /** No usage came: the counts are ours. */
  estimated: boolean;
  /** An answer began; only then do `per_request` prices and estimates count. */
  answered: boolean;
  /** Integer nano-dollars; undefined when nobody gave a price. Filled in by accounting. */
  costNanoUsd: number | undefined;
  shadow: boolean;
}

/** An answer that was given again instead of being made anew: no model was asked, and nothing is owed. */
export interface SavedAnswer extends Pick<ModelCall, 'startedAt' | 'model' | 'upstream' | 'route' | 'service' | 'project' | 'user' | 'session' | 'key'> {
  /** Input and output of when it was made. */
  tokens: number;
}

import type { PricingConfig } from './config.ts';

/** Where a call goes: one block of address, key, name, version, price, window and abilities. Made by `config`. */
export interface UpstreamTarget {
  /** As shown to callers: a model's id, or `provider/model_name`. */
  id: string;
  /** Address, name and a hash of the key: the breaker's identity. */
  identity: string;
  /** The provider's file name: `openai`, `anthropic`, `simulator` … */
  provider: string;
  modelName: string;
  apiBase: string;
  apiKeyEnv: string | undefined;
  /** The secret itself. Never logged, never enumerated: see `config`. */
  readonly apiKey: string | undefined;
  apiVersion: string | undefined;
  headers: Readonly<Record<string, string>>;
  query: Readonly<Record<string, string>>;
  extraBody: Readonly<Record<string, unknown>>;
  /** Default and ceiling of the answer, in tokens. */
  maxTokens: number | undefined;
  contextWindow: number | undefined;
  /** One attempt to the response's end; in a stream: between chunks. */
  timeoutMs: number;
  /** Streams: until the first content. */
  firstTokenTimeoutMs: number;
  /** Calls at once; undefined: no bound. */
  maxConcurrent?: number | undefined;
  /** How many more may wait for a place. */
  maxQueue?: number | undefined;
  supports: { vision: boolean; tools: boolean; json_schema: boolean };
  reasoning: 'send' | 'strip' | undefined;
  /** The registry model whose prices hold. */
  pricedAs: string;
  /** Prices of the list entry itself; they win over `pricedAs`. */
  pricing?: readonly PricingConfig[] | undefined;
  weight: number;
  /** Provider-specific settings of the model (`max_tokens_field`, `stream_options`, …). */
  quirks: Readonly<Record<string, unknown>>;
}

import type { ChatCompletion, ChatRequest } from '../wire/chat.ts';
import type { JsonSource } from '../wire/splice-json.ts';
import type { Exceeded } from './errors.ts';
import type { Attempt, UpstreamTarget } from './exchange.ts';
import type { Form, Reader } from './stream.ts';

/** One call, ready for the wire. */
export interface UpstreamCall {
  method: 'POST';
  url: string;
  headers: Record<string, string>;
  body: string | Uint8Array;
  stream: boolean;
  /** Parameters that this form cannot carry. */
  droppedParams: string[];
  /** What the way back needs (tool names and ids as they were); private to the provider. */
  context: unknown;
}
/** What an upstream's refusal means, however it words it. */
export type FailureKind =
  | 'rate_limited' // 429: set aside for `retryAfterMs`
  | 'overloaded' // 5xx, 529
  | 'timeout' // 408
  | 'conflict' // 409
  | 'auth' // 401, 403: hermes' account there
  | 'quota' // 402, exhausted quota
  | 'model_missing' // 404
  | 'redirected' // 3xx: its address is not quite right
  | 'context_overflow' // permanent for that target
  | 'content_policy' // to the client as it is
  | 'invalid'; // other 4xx: the request's own fault
export interface UpstreamFailure {
  kind: FailureKind;
  status: number;
  message: string;
  type: string;
  code: string | null;
  param: string | null;
  /** From `retry-after-ms` or `retry-after` in any of its forms; undefined when absent or unreadable. */
  retryAfterMs: number | undefined;
  /** Of `context_overflow`, where the upstream says the numbers. */
  exceeded?: Exceeded | undefined;
  /** More that the upstream says of it, as it came. */
  details?: Record<string, unknown> | undefined;
}
/**
 * A pure, two-way translator between the canonical form (OpenAI chat) and one wire format. No sockets, no configuration
 * look-ups, repeatable; everything that an upstream's quirk needs is in its own file.
 */
export interface Provider {
  form: Form;
  /** What an SDK would be given as its base URL, when the model names none; and the key's usual variable. */
  defaults?: { apiBase?: string; apiKeyEnv?: string };
  /**
   * Throws a HermesError (400) for what dropping would change in meaning (`n > 1`). `caller`: the body that came in this
   * provider's own form: what still stands in it goes out byte for byte.
   */
  toUpstream(request: ChatRequest, target: UpstreamTarget, attempt?: Attempt, caller?: JsonSource): UpstreamCall;
  /** Credentials that are signed or expire: the one asynchronous part, with the clock (Unix milliseconds) handed in. */
  authorize?(call: UpstreamCall, credentials: { apiKey: string | undefined }, now: number): Promise<UpstreamCall>;
  /** A whole 200 body. Throws a HermesError (`upstream_empty_answer`, or the kind that an error object in it says) when there is no answer in it. */
  fromUpstream(bytes: Uint8Array, call: UpstreamCall): ChatCompletion;
  createReader(call: UpstreamCall): Reader;
  /** Of an answer's headers those that callers may see (rate limits, the vendor's own times), in OpenAI's names and units. `now`: Unix milliseconds. */
  toHeaders?(headers: Readonly<Record<string, string>>, now: number): Record<string, string>;
  /** A refusal: status >= 400, or an error event's payload inside a 200. */
  toFailure(status: number, headers: Readonly<Record<string, string>>, bytes: Uint8Array): UpstreamFailure;
  /**
   * Answers in this process instead of over the network (the simulator). Yields wire bytes of `form` when `call.stream`,
   * else one whole body; throws an UpstreamFailure for a refusal.
   */
  answer?(call: UpstreamCall, signal: AbortSignal): AsyncIterable<Uint8Array>;
}
export function defineProvider(provider: Provider): Provider {
  return provider;
}

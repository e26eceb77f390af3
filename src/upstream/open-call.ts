import type { HermesError } from '../contracts/errors.ts';
import type { UpstreamCall, UpstreamFailure } from '../contracts/provider.ts';

export interface UpstreamHead {
  status: number;
  /** Lower-case names. */
  headers: Record<string, string>;
  /** Set where a provider that answers in this process refused. */
  failure?: UpstreamFailure;
}

/**
 * One call under way. Whoever reads drives; what is not read stays in the socket. Limits are points in time
 * (`performance.now()`), given with each wait, and hold only while somebody waits: a slow reader is not the upstream's silence.
 * A limit that passes, and `abort`, end the call at once. Rejections are HermesErrors.
 */
export interface OpenCall {
  head(until: number): Promise<UpstreamHead>;
  /** What has come since the last read; `null` at the end. */
  read(until: number): Buffer | null | Promise<Buffer | null>;
  /** Nothing more is read. The connection is kept for the next call when the answer's end comes within `graceMs`. */
  release(graceMs: number): void;
  abort(reason: HermesError): void;
}
export interface UpstreamClient {
  open(call: UpstreamCall): OpenCall;
  close(): Promise<void>;
}

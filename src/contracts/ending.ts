import type { Exchange } from './exchange.ts';

/** What an exchange leaves behind: for the log line, the metrics and the trace. Times in milliseconds. */
export interface Ending {
  exchange: Exchange | undefined;
  traceId: string;
  requestId: string;
  /** The `x-request-id` that came with the request: noted, never ours. */
  callerRequestId: string | undefined;
  method: string;
  path: string;
  /** What the client saw, or would have seen: an error after the head counts as its own status. */
  status: number;
  error: string | undefined;
  durationMs: number;
  overheadMs: number | undefined;
  firstTokenMs: number | undefined;
}

import type { Exchange } from './exchange.ts';

/** An operator's request (`/admin/…`, `/debug/…`), from an admin key: the parsed query and, for POST, the parsed body. */
export interface AdminRequest {
  method: string;
  path: string;
  query: URLSearchParams;
  body: unknown;
  exchange: Exchange;
}
export interface AdminReply {
  status?: number;
  /** JSON when absent. */
  contentType?: string;
  body: unknown;
}

import type { Usage } from '../wire/chat.ts';
import type { HermesError } from './errors.ts';
import type { ChunkStream, Form } from './stream.ts';

export interface ToolCallFact {
  tool: string;
  request_id: string;
  status: 'ok' | 'error' | 'timeout' | 'unavailable' | 'invalid' | 'replayed' | 'unknown' | 'aborted';
  ms: number;
  /** Requests sent to the tool; 0 when its stored result was taken. For the log. */
  tries?: number;
}
/** The first choice's own outcome, beside a degraded answer. */
export interface Original {
  model: string;
  upstream: string;
  status: number;
  error: { message: string; type: string; code: string | null } | null;
  content: string | null;
}
/** What is known of an answer. Lives on the answer, not on the exchange, so that a joiner and a replay carry the leader's; live until the end. */
export interface Facts {
  requestId?: string | undefined;
  route?: string | undefined;
  model?: string | undefined;
  upstream?: string | undefined;
  attempts?: number | undefined;
  degraded?: boolean | undefined;
  original?: Original | undefined;
  droppedParams?: string[] | undefined;
  toolCalls?: ToolCallFact[] | undefined;
  unavailableTools?: string[] | undefined;
  sessionId?: string | undefined;
  sessionMessages?: number | undefined;
  /** Messages that trimming left out, and the tokens that were sent. */
  trimmedMessages?: number | undefined;
  contextTokens?: number | undefined;
  usage?: Usage | undefined;
  finishReason?: string | undefined;
  upstreamFinishReason?: string | undefined;
  /** Headers of the upstream's answer that the caller may see, in OpenAI's names: its rate limits. */
  upstreamHeaders?: Record<string, string> | undefined;
  /** The vendor that answered (wire/maker): whose reasoning this is. */
  maker?: string | undefined;
  /** Milliseconds spent waiting for upstreams and tools: the rest is hermes' own. */
  waitedMs?: number | undefined;
  replayed?: boolean | undefined;
}

export interface Answer {
  status: number;
  /** Lower-case names. Free to change after `await next()`; too late only when a heartbeat has committed the 200. */
  headers: Record<string, string>;
  /** A completion (sent as JSON, or as SSE when that was asked). Parsed when looked at, compared before it is written. */
  body: unknown;
  /** The same for hermes' own steps, which do not change it: no comparison is paid. */
  readonly view: unknown;
  /** The body as it came, while nobody has replaced it. */
  readonly raw: { bytes: Uint8Array; form: Form } | undefined;
  /** Instead of a body. */
  stream: ChunkStream | undefined;
  /** Status >= 400 made by us or an upstream; the edge makes the body in the client's form. */
  error: HermesError | undefined;
  /** The finish event waits for the `onEnd`s too, not the terminal marker alone. */
  holdFinish: boolean;
  facts: Facts;
}
/** What a step may put on `exchange.answer`. */
export interface AnswerInit {
  status?: number;
  headers?: Record<string, string>;
  body?: unknown;
  stream?: ChunkStream | undefined;
  error?: HermesError | undefined;
  holdFinish?: boolean;
  facts?: Facts;
}

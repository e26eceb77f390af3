import http from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ChatChunk, ChatMessage, ChatRequest, ChunkChoice, Delta, Usage } from '../src/wire/chat.ts';
import { findViolation } from './fake-upstream-rules.ts';

/**
 * A real HTTP server that is as strict as the OpenAI API: what a client may not send is answered with 400 in OpenAI's
 * shape, and recorded as a violation. How it behaves is scripted by model name; without a script it echoes.
 */
export interface ReceivedCall {
  method: string;
  path: string;
  headers: http.IncomingHttpHeaders;
  raw: string;
  body: ChatRequest;
  model: string;
  /** How many calls of this model came before it. */
  earlier: number;
  /** performance.now() */
  at: number;
  /** Set when the connection was closed or the answer was done. */
  closedAt: number | undefined;
  /** The client hung up before the answer was whole. */
  aborted: boolean;
}
/** A delta becomes a chunk of choice 0, a word its finish reason, an object with `choices`, `error` or `usage` goes as it is. */
export type Piece = string | Delta | Partial<ChatChunk> | { error: unknown };
export type Behaviour = (reply: Reply, call: ReceivedCall) => void | Promise<void>;

export interface FakeUpstream {
  /** What an SDK would be given as its base URL. */
  url: string;
  port: number;
  calls: ReceivedCall[];
  violations: string[];
  on(model: string, behaviour: Behaviour): void;
  callsOf(model: string): ReceivedCall[];
  /** The newest call whose body contains this text. */
  find(text: string): ReceivedCall | undefined;
  /** Resolves when the condition holds; rejects after `ms`. */
  until(condition: () => boolean, ms?: number): Promise<void>;
  openConnections(): Promise<number>;
  close(): Promise<void>;
}

export const frame = (choices: ChunkChoice[], more: Partial<ChatChunk> = {}): ChatChunk => ({
  id: 'chatcmpl-fake',
  object: 'chat.completion.chunk',
  created: 1_790_000_000,
  model: 'fake-1',
  choices,
  ...more,
});
export function toFrame(piece: Piece): object {
  if (typeof piece === 'string') return frame([{ index: 0, delta: {}, finish_reason: piece }]);
  if ('error' in piece || 'choices' in piece) return piece;
  if ('usage' in piece) return frame([], piece as Partial<ChatChunk>);
  return frame([{ index: 0, delta: piece as Delta, finish_reason: null }]);
}
export const toEventText = (piece: Piece): string => `data: ${JSON.stringify(toFrame(piece))}\n\n`;
export const DONE = 'data: [DONE]\n\n';

/** How a scripted answer is given. */
class Reply {
  readonly response: http.ServerResponse;
  readonly call: ReceivedCall;
  constructor(response: http.ServerResponse, call: ReceivedCall) {
    this.response = response;
    this.call = call;
  }
  json(value: unknown, status = 200, headers: http.OutgoingHttpHeaders = {}): void {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    this.response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text), ...headers });
    this.response.end(text);
  }
  error(
    status: number,
    message = `boom ${status}`,
    more: { type?: string; code?: string | null; param?: string | null; headers?: http.OutgoingHttpHeaders } = {},
  ): void {
    this.json({ error: { message, type: more.type ?? 'server_error', param: more.param ?? null, code: more.code ?? null } }, status, more.headers);
  }
  /** A whole completion, or the same as a stream when that was asked. */
  completion(message: Partial<ChatMessage>, more: { finish?: string; usage?: Usage | null; delayMs?: number } = {}): void | Promise<void> {
    const usage = more.usage === undefined ? USAGE : more.usage;
    const finish = more.finish ?? (message.tool_calls ? 'tool_calls' : 'stop');
    if (!this.call.body.stream)
      return this.json({
        id: 'chatcmpl-fake',
        object: 'chat.completion',
        created: 1_790_000_000,
        model: 'fake-1',
        choices: [{ index: 0, message: { role: 'assistant', content: null, ...message }, logprobs: null, finish_reason: finish }],
        ...(usage ? { usage } : {}),
      });
    const pieces: Piece[] = [{ role: 'assistant', content: '' }];
    if (typeof message.content === 'string') for (const word of message.content.split(/(?<= )/)) pieces.push({ content: word });
    for (const [index, one] of (message.tool_calls ?? []).entries()) pieces.push({ tool_calls: [{ index, ...one }] });
    pieces.push(finish);
    if (usage && this.call.body.stream_options?.include_usage) pieces.push({ usage });
    return this.stream(pieces, more.delayMs === undefined ? {} : { delayMs: more.delayMs });
  }
  open(headers: http.OutgoingHttpHeaders = {}): this {
    if (!this.response.headersSent) {
      this.response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', ...headers });
      this.response.flushHeaders();
    }
    return this;
  }
  async stream(pieces: readonly Piece[], options: { delayMs?: number; done?: boolean; end?: boolean } = {}): Promise<void> {
    this.open();
    for (const piece of pieces) {
      if (this.response.destroyed) return;
      this.response.write(toEventText(piece));
      if (options.delayMs) await sleep(options.delayMs);
    }
    if (options.done !== false) this.response.write(DONE);
    if (options.end !== false) this.response.end();
  }
  /** Bytes as they are, after an event stream's head. */
  bytes(...pieces: (string | Uint8Array)[]): this {
    this.open();
    for (const piece of pieces) this.response.write(piece);
    return this;
  }
  end(): void {
    this.response.end();
  }
  /** Nothing more is said; the connection stays open. */
  stall(): void {}
  /** Closes the connection without ending the answer. */
  async cut(afterMs = 20): Promise<void> {
    await sleep(afterMs);
    this.response.destroy();
  }
  reset(): void {
    (this.response.socket as Socket | null)?.resetAndDestroy();
  }
}

export const USAGE: Usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };

/** Answers `echo: ` and the newest user text. */
const echo: Behaviour = (reply, call) => {
  const last = call.body.messages.findLast((message) => message.role === 'user')?.content;
  return reply.completion({ content: `echo: ${typeof last === 'string' ? last : JSON.stringify(last ?? null)}` });
};

export interface FakeUpstreamOptions {
  /** Only this bearer token is taken; otherwise any. */
  apiKey?: string;
  /** Refuse what the API refuses (default). */
  strict?: boolean;
  /** Serves what is no chat, before anything is read; true: it did. */
  routes?: (request: http.IncomingMessage, response: http.ServerResponse) => Promise<boolean>;
}

export async function createFakeUpstream(options: FakeUpstreamOptions = {}): Promise<FakeUpstream> {
  const behaviours = new Map<string, Behaviour>();
  const calls: ReceivedCall[] = [];
  const counts = new Map<string, number>();
  const violations: string[] = [];
  const server = http.createServer(async (request, response) => {
    if (await options.routes?.(request, response)) return;
    const raw = await readAll(request);
    const call = toCall(request, raw, counts);
    calls.push(call);
    const close = (): void => {
      call.closedAt = performance.now();
      call.aborted = !response.writableFinished;
    };
    // Hung up while sending: what came is for the record, not to be judged.
    if (!request.complete) return close();
    response.on('close', close);
    response.on('error', () => {});
    const reply = new Reply(response, call);
    const violation = findViolation(call, options.apiKey);
    if (violation && options.strict !== false) {
      violations.push(violation.message);
      reply.error(violation.status, violation.message, { type: 'invalid_request_error', param: violation.param, code: violation.code });
      return;
    }
    try {
      await (behaviours.get(call.model) ?? echo)(reply, call);
    } catch (error) {
      violations.push(`the script of ${call.model} failed: ${String(error)}`);
      response.destroy();
    }
  });
  server.keepAliveTimeout = 30_000;
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    port,
    calls,
    violations,
    on: (model, behaviour) => void behaviours.set(model, behaviour),
    callsOf: (model) => calls.filter((call) => call.model === model),
    find: (text) => calls.findLast((call) => call.raw.includes(text)),
    async until(condition, ms = 10_000) {
      for (const end = performance.now() + ms; !condition(); ) {
        if (performance.now() > end) throw new Error(`not within ${ms} ms: ${condition}`);
        await sleep(5);
      }
    },
    openConnections: () => new Promise((done, bad) => server.getConnections((error, count) => (error ? bad(error) : done(count)))),
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

async function readAll(request: http.IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  try {
    for await (const part of request) parts.push(part as Buffer);
  } catch {
    // The client hung up while sending.
  }
  return Buffer.concat(parts).toString('utf8');
}

function toCall(request: http.IncomingMessage, raw: string, counts: Map<string, number>): ReceivedCall {
  let body: ChatRequest;
  try {
    body = JSON.parse(raw);
  } catch {
    body = { messages: [] };
  }
  const model = typeof body?.model === 'string' ? body.model : '';
  const earlier = counts.get(model) ?? 0;
  counts.set(model, earlier + 1);
  return {
    method: request.method ?? '',
    path: request.url ?? '',
    headers: request.headers,
    raw,
    body,
    model,
    earlier,
    at: performance.now(),
    closedAt: undefined,
    aborted: false,
  };
}

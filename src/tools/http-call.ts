import { createHmac } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { type Dispatcher, errors, request } from 'undici';
import type { ToolConfig } from '../contracts/config.ts';
import type { Environment } from '../contracts/telemetry.ts';
import { stringifyJson } from '../wire/json.ts';
import { failure, type ToolResult, unknownOutcome } from './result.ts';

/** Beyond it a result is no result: nothing sensible fits a context. */
const MAX_RESULT_BYTES = 4 * 1024 ** 2;
const MAX_QUOTED = 2000;
const RETRY_BASE_MS = 100;
/** Failures before a connection stood: the tool cannot have seen the request. */
const UNSENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT']);

export interface ToolCallInput {
  tool: ToolConfig;
  requestId: string;
  sessionId: string | null;
  user: string | null;
  params: Record<string, unknown>;
  secret: string | undefined;
  /** Ends a call that only reads; absent: it is completed, whoever leaves. */
  signal: AbortSignal | undefined;
  /** Further tries after the first. */
  retries: number;
}

/** One try's fate. `unclear`: sent, and nobody knows what became of it. */
type Try = { kind: 'answered'; status: number; text: string } | { kind: 'unsent' | 'unclear' | 'too_large' | 'timeout'; message: string };

/** Calls a tool over HTTP, with its retries. Never rejects but for `signal`: what goes wrong is a result. */
export class HttpCall {
  readonly #environment: Environment;
  readonly #dispatcher: Dispatcher | undefined;

  constructor(environment: Environment, dispatcher: Dispatcher | undefined) {
    this.#environment = environment;
    this.#dispatcher = dispatcher;
  }

  async run(input: ToolCallInput): Promise<ToolResult> {
    const { tool, requestId, sessionId, user, params } = input;
    const began = performance.now();
    const body = stringifyJson({ tool: tool.id, request_id: requestId, session_id: sessionId, user, params });
    let tries = 0;
    let last: Try;
    do {
      if (tries > 0) await pause(RETRY_BASE_MS * 2 ** tries * this.#environment.random(), undefined, { ...(input.signal ? { signal: input.signal } : {}) });
      tries++;
      last = await this.#once(input, body);
    } while (tries <= input.retries && isRetried(tool, last));
    return toResult(tool, requestId, last, { tries, ms: Math.round(performance.now() - began) });
  }

  async #once({ tool, requestId, secret, signal }: ToolCallInput, body: string): Promise<Try> {
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), tool.timeout_ms);
    const stop = (): void => limit.abort();
    signal?.addEventListener('abort', stop, { once: true });
    if (signal?.aborted) stop();
    try {
      const response = await request(tool.endpoint, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json',
          'idempotency-key': requestId,
          'user-agent': 'hermes-agent',
          ...this.#sign(secret, body),
        },
        body,
        signal: limit.signal,
        headersTimeout: 0,
        bodyTimeout: 0,
        ...(this.#dispatcher ? { dispatcher: this.#dispatcher } : {}),
      });
      const text = await readText(response.body);
      if (text === undefined) return { kind: 'too_large', message: `The tool's answer is larger than ${MAX_RESULT_BYTES} bytes.` };
      return { kind: 'answered', status: response.statusCode, text };
    } catch (thrown) {
      if (signal?.aborted) throw signal.reason;
      if (limit.signal.aborted) return { kind: 'timeout', message: `The tool did not answer within ${tool.timeout_ms} ms.` };
      return toFailedTry(thrown);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', stop);
    }
  }

  #sign(secret: string | undefined, body: string): Record<string, string> {
    if (secret === undefined) return {};
    const timestamp = String(Math.floor(this.#environment.now() / 1000));
    return { 'x-hermes-timestamp': timestamp, 'x-hermes-signature': `v1=${createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex')}` };
  }
}

async function readText(body: AsyncIterable<Buffer>): Promise<string | undefined> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of body) {
    bytes += piece.length;
    // Leaving the loop destroys the body, and with it the connection.
    if (bytes > MAX_RESULT_BYTES) return undefined;
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}

function toFailedTry(thrown: unknown): Try {
  const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : '';
  const before = UNSENT.has(code) || thrown instanceof errors.ConnectTimeoutError || code.startsWith('ERR_TLS') || code.startsWith('CERT_');
  return before
    ? { kind: 'unsent', message: 'The tool cannot be reached.' }
    : { kind: 'unclear', message: 'The connection to the tool broke before it answered.' };
}

/** A tool that changes something and has answered, whatever it said, is not asked again. */
function isRetried(tool: ToolConfig, last: Try): boolean {
  if (last.kind === 'answered') return !tool.side_effects && (last.status >= 500 || last.status === 429 || last.status === 408);
  return last.kind !== 'too_large';
}

function toResult(tool: ToolConfig, requestId: string, last: Try, spent: { tries: number; ms: number }): ToolResult {
  if (last.kind === 'answered') {
    if (last.status >= 200 && last.status < 300) return { status: 'ok', content: last.text.trim() === '' ? '{"ok":true}' : last.text, requestId, ...spent };
    const said = last.text.trim() === '' ? '' : `: ${last.text.slice(0, MAX_QUOTED)}`;
    const refused = last.status >= 400 && last.status < 500 && last.status !== 408;
    return failure('error', `The tool answered with status ${last.status}${said}`, requestId, { ...spent, ...(refused ? { refused } : {}) });
  }
  if (last.kind === 'unsent') return failure('error', last.message, requestId, { ...spent, unsent: true });
  if (tool.side_effects && last.kind !== 'too_large') return unknownOutcome(requestId, { ...spent, ...(last.kind === 'timeout' ? { status: 'timeout' } : {}) });
  return failure(last.kind === 'timeout' ? 'timeout' : 'error', last.message, requestId, spent);
}

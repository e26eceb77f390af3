import { createHmac } from 'node:crypto';
import { type Dispatcher, request } from 'undici';
import type { EndpointTool } from '../contracts/config.ts';
import type { Environment } from '../contracts/telemetry.ts';
import { stringifyJson } from '../wire/json.ts';
import { MAX_QUOTED, MAX_RESULT_BYTES, type ToolCallInput, type Try, toBrokenTry, tooLarge } from './tries.ts';
import { withinTime } from './within-time.ts';

/** Calls a tool over HTTP. */
export class HttpCall {
  readonly #environment: Environment;
  readonly #dispatcher: Dispatcher | undefined;

  constructor(environment: Environment, dispatcher: Dispatcher | undefined) {
    this.#environment = environment;
    this.#dispatcher = dispatcher;
  }

  /** Rejects only when `signal` ends it. */
  once({ tool, requestId, sessionId, user, params, signal }: ToolCallInput<EndpointTool>, secret: string | undefined): Promise<Try> {
    const body = stringifyJson({ tool: tool.id, request_id: requestId, session_id: sessionId, user, params });
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json',
      'idempotency-key': requestId,
      'user-agent': 'hermes-agent',
      ...this.#sign(secret, body),
    };
    const dispatcher = this.#dispatcher ? { dispatcher: this.#dispatcher } : {};
    const work = async (limit: AbortSignal): Promise<Try> => {
      const response = await request(tool.endpoint, { method: 'POST', headers, body, signal: limit, headersTimeout: 0, bodyTimeout: 0, ...dispatcher });
      const text = await readText(response.body);
      return text === undefined ? tooLarge() : toTry(response.statusCode, text);
    };
    return withinTime(tool, signal, work, toBrokenTry);
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

/** An answer by its status: 4xx says that nothing was done. */
export function toTry(status: number, text: string): Try {
  if (status >= 200 && status < 300) return { kind: 'ok', text };
  const said = text.trim() === '' ? '' : `: ${text.slice(0, MAX_QUOTED)}`;
  return {
    kind: 'failed',
    message: `The tool answered with status ${status}${said}`,
    refused: status >= 400 && status < 500 && status !== 408,
    passing: status >= 500 || status === 429 || status === 408,
  };
}

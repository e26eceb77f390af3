import { type Dispatcher, request } from 'undici';

export interface PostInit {
  method: 'POST';
  headers: Record<string, string>;
  body: string;
  signal: AbortSignal;
  /** Undici's own by default, which knows of no proxy. */
  dispatcher?: Dispatcher;
}

/**
 * One POST to an address of the configuration; gives the text of a 2xx answer. Rejects for a refused connection, any other status
 * (redirects are not followed), more than `maxBytes`, and when `timeoutMs` have passed or the signal is aborted.
 */
export async function post(url: string, init: PostInit, timeoutMs: number, maxBytes: number): Promise<string> {
  const signal = AbortSignal.any([init.signal, AbortSignal.timeout(timeoutMs)]);
  const { statusCode, body } = await request(url, { ...init, signal, headersTimeout: timeoutMs, bodyTimeout: timeoutMs });
  if (statusCode < 200 || statusCode > 299) {
    await body.dump();
    throw new Error(`status ${statusCode}`);
  }
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of body as AsyncIterable<Buffer>) {
    bytes += part.length;
    // Leaving the loop ends the connection with it.
    if (bytes > maxBytes) throw new Error(`an answer of more than ${maxBytes} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

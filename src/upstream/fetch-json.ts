import { request } from 'undici';

/**
 * A POST that gives the parsed JSON body. Rejects for a refused connection, a status that is not 2xx, a body that is not
 * JSON or larger than 64 MB, and when `timeoutMs` have passed or `init.signal` is aborted.
 */
export async function fetchJson(
  url: string,
  init: { method: 'POST'; headers: Record<string, string>; body: string; signal: AbortSignal },
  timeoutMs: number,
): Promise<unknown> {
  const signal = AbortSignal.any([init.signal, AbortSignal.timeout(timeoutMs)]);
  const { statusCode, body } = await request(url, { ...init, signal, headersTimeout: timeoutMs, bodyTimeout: timeoutMs });
  if (statusCode < 200 || statusCode > 299) {
    await body.dump();
    throw new Error(`status ${statusCode}`);
  }
  return body.json();
}

import { request } from 'undici';

const MOST_BYTES = 65_536;

/**
 * A POST to an address of the configuration. Gives the parsed answer, or undefined where it is no JSON: webhooks answer what they
 * like. Rejects for a refused connection, a status that is not 2xx (redirects are not followed), and when the time has passed.
 */
export async function postWebhook(
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
  let text = '';
  body.setEncoding('utf8');
  for await (const part of body) {
    text += String(part);
    if (text.length > MOST_BYTES) break;
  }
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

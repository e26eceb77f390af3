import { type PostInit, post } from './post.ts';

const MOST_BYTES = 65_536;

/** A POST that gives the parsed answer, or undefined where it is no JSON: webhooks answer what they like. Rejects as `post` does. */
export async function postWebhook(url: string, init: PostInit, timeoutMs: number): Promise<unknown> {
  const text = await post(url, init, timeoutMs, MOST_BYTES);
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

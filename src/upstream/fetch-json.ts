import { type PostInit, post } from './post.ts';

const MOST_BYTES = 64 * 1024 ** 2;

/** A POST that gives the parsed JSON body; rejects as `post` does, and for a body that is not JSON. */
export async function fetchJson(url: string, init: PostInit, timeoutMs: number): Promise<unknown> {
  return JSON.parse(await post(url, init, timeoutMs, MOST_BYTES));
}

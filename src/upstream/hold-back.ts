import { HermesError } from '../contracts/errors.ts';
import type { Chunk, ChunkStream } from '../contracts/stream.ts';
import type { ChatChunk } from '../wire/chat.ts';
import { hasContent } from '../wire/chat.ts';
import { collect } from '../wire/collect.ts';
import { hold } from '../wire/streams.ts';
import { type HeldBytes, untilRead } from './held-bytes.ts';

export interface HeldBack {
  /** All of it, from the beginning. */
  stream: ChunkStream;
  /** Read to its end already. */
  ended: boolean;
}
export interface Broken {
  error: HermesError;
  /** What had come before it broke; null when that is nothing. */
  content: string | null;
}

/**
 * Reads a stream ahead to its first content, so that nothing a client sees is taken back. `maxBytes` bounds what is held. A
 * stream that ends with no answer in it is broken, too.
 */
export async function holdBack(stream: ChunkStream, maxBytes: number): Promise<HeldBack | Broken> {
  const answer = new AnswerWatch();
  const { error, ended, stream: held } = await hold(stream, (chunk) => answer.see(chunk), maxBytes);
  if (error) return { error, content: null };
  return ended && !answer.seen ? noAnswer() : { stream: held, ended };
}

/** The same to the stream's end (`commit: complete`), within what all requests may hold together. */
export async function holdWhole(stream: ChunkStream, maxBytes: number, heldBytes: HeldBytes): Promise<HeldBack | Broken> {
  const answer = new AnswerWatch();
  const { stream: counted, letGo } = heldBytes.fill(stream);
  const held = await hold(counted, (chunk) => answer.see(chunk) && false, maxBytes);
  if (held.ended && answer.seen) return { stream: untilRead(held.stream, letGo), ended: true };
  letGo();
  if (held.ended) return noAnswer();
  const error =
    held.error ??
    new HermesError('overloaded', 'The answer is too large to be held back as a whole; ask without x-hermes-commit: complete.', { retryable: false });
  const content = held.error ? await contentOf(held.stream) : null;
  await stream.cancel(error);
  return { error, content };
}

function noAnswer(): Broken {
  return { error: new HermesError('upstream_empty_answer', 'The upstream answered 200 with no answer in it.'), content: null };
}

/** Tells the first chunk that makes a stream an answer. */
class AnswerWatch {
  seen = false;
  #text = false;

  see({ view }: Chunk): boolean {
    this.seen ||= hasContent(view) || this.#finishes(view);
    return this.seen;
  }

  /** "stop" after nothing at all, not even an empty text or list of calls, is `content: null`: no answer. An empty one that was cut by its length is. */
  #finishes(chunk: Readonly<ChatChunk>): boolean {
    for (const { delta, finish_reason } of chunk.choices ?? []) {
      if (typeof delta?.content === 'string' || Array.isArray(delta?.tool_calls)) this.#text = true;
      if (finish_reason && (finish_reason !== 'stop' || this.#text)) return true;
    }
    return false;
  }
}

/** The text of a broken stream's beginning. */
async function contentOf(stream: ChunkStream): Promise<string | null> {
  let content = '';
  const readable: ChunkStream = {
    async read() {
      try {
        return await stream.read();
      } catch {
        return null;
      }
    },
    cancel: () => undefined,
  };
  for (const { message } of (await collect(readable)).choices) if (typeof message.content === 'string') content += message.content;
  return content || null;
}

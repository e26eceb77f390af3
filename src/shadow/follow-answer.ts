import type { Answer, Exchange } from '../contracts/exchange.ts';
import type { Batch, ChunkStream } from '../contracts/stream.ts';
import { answerText, costOf, type Side } from './comparison.ts';

/** Kept of an answer for the comparison. */
const MAX_TEXT = 20_000;

/** Notes an answer as it is read by whoever reads it; `done` hears of its end once. Bytes and batches are handed on untouched. */
export function followAnswer(answer: Answer, exchange: Exchange, startedAt: number, done: (side: Side) => void): void {
  const end = (ok: boolean, text: string) =>
    done({
      ok,
      text,
      costNanoUsd: costOf(exchange.calls),
      latencyMs: performance.now() - startedAt,
      firstTokenMs: exchange.calls.find((call) => call.firstTokenMs !== undefined)?.firstTokenMs,
    });
  if (answer.stream) answer.stream = new FollowedStream(answer.stream, end);
  else end(answer.error === undefined && answer.status < 400, answerText(answer.view).slice(0, MAX_TEXT));
}

class FollowedStream implements ChunkStream {
  readonly #source: ChunkStream;
  readonly #end: (ok: boolean, text: string) => void;
  #text = '';
  #over = false;

  constructor(source: ChunkStream, end: (ok: boolean, text: string) => void) {
    this.#source = source;
    this.#end = end;
  }

  read(): Batch | null | Promise<Batch | null> {
    try {
      const batch = this.#source.read();
      if (!(batch instanceof Promise)) return this.#note(batch);
      return batch.then(
        (value) => this.#note(value),
        (thrown) => this.#fail(thrown),
      );
    } catch (thrown) {
      return this.#fail(thrown);
    }
  }

  cancel(...reason: Parameters<ChunkStream['cancel']>): Promise<void> | void {
    this.#finish(false);
    return this.#source.cancel(...reason);
  }

  #note(batch: Batch | null): Batch | null {
    if (batch === null) this.#finish(true);
    else if (this.#text.length < MAX_TEXT) {
      for (const chunk of batch.chunks) this.#text += chunk.view.choices?.[0]?.delta?.content ?? '';
    }
    return batch;
  }

  #fail(thrown: unknown): never {
    this.#finish(false);
    throw thrown;
  }

  #finish(ok: boolean): void {
    if (this.#over) return;
    this.#over = true;
    this.#end(ok, this.#text);
  }
}

import type { Config } from '../contracts/config.ts';
import type { Answer, Exchange } from '../contracts/exchange.ts';
import type { Batch, ChunkStream } from '../contracts/stream.ts';
import type { ChatCompletion } from '../wire/chat.ts';
import { isRecord } from '../wire/json.ts';
import { type CapturedContent, createCapturedContent } from './captured-content.ts';
import { ExchangeTrace } from './trace.ts';

/** Takes out what `trace.redact` names. */
export type Redact = (config: Config, content: unknown) => unknown;

/** Under `trace.capture_content`: what the caller sent and what it was answered goes with the trace. */
export function captureContent(exchange: Exchange, answer: Answer, redact: Redact): void {
  const { trace, inbound, config } = exchange;
  if (!(trace instanceof ExchangeTrace)) return;
  const messages: readonly unknown[] = Array.isArray(inbound.request.messages) ? inbound.request.messages : [];
  const content = createCapturedContent(config, messages, (said) => redact(config, said));
  trace.content = content;
  if (answer.stream) answer.stream = new ListenedStream(answer.stream, content);
  else if (isRecord(answer.view) && Array.isArray(answer.view.choices)) content.hear(textOf(answer.view as object as ChatCompletion));
}

class ListenedStream implements ChunkStream {
  readonly #inner: ChunkStream;
  readonly #content: CapturedContent;

  constructor(inner: ChunkStream, content: CapturedContent) {
    this.#inner = inner;
    this.#content = content;
  }
  read(): Batch | null | Promise<Batch | null> {
    const next = this.#inner.read();
    return next instanceof Promise ? next.then((batch) => this.#hear(batch)) : this.#hear(next);
  }
  cancel(...reason: Parameters<ChunkStream['cancel']>): ReturnType<ChunkStream['cancel']> {
    return this.#inner.cancel(...reason);
  }
  #hear(batch: Batch | null): Batch | null {
    if (batch === null) return batch;
    let text = '';
    for (const { view } of batch.chunks) for (const choice of view.choices ?? []) text += choice.delta?.content ?? '';
    if (text !== '') this.#content.hear(text);
    return batch;
  }
}

function textOf(completion: ChatCompletion): string {
  return completion.choices.map(({ message }) => (typeof message?.content === 'string' ? message.content : '')).join('\n');
}

import type { Answer, Exchange } from '../contracts/exchange.ts';
import type { Batch, ChunkStream } from '../contracts/stream.ts';
import type { ChatCompletion } from '../wire/chat.ts';
import { isRecord } from '../wire/json.ts';
import { ExchangeTrace, type TraceContent } from './trace.ts';

/** Of each message and of the answer, in characters: a trace is for looking at. */
const MAX_TEXT = 16_384;
const MAX_MESSAGES = 50;

/** Under `trace.capture_content`: what the caller sent and what it was answered, cut to a length, with the trace. */
export function captureContent(exchange: Exchange, answer: Answer): void {
  const { trace, inbound } = exchange;
  if (!(trace instanceof ExchangeTrace)) return;
  const messages: readonly unknown[] = Array.isArray(inbound.request.messages) ? inbound.request.messages : [];
  const content: TraceContent = { request: messages.slice(-MAX_MESSAGES).map(cut) };
  trace.content = content;
  if (answer.stream) answer.stream = new ListenedStream(answer.stream, content);
  else if (isRecord(answer.view) && Array.isArray(answer.view.choices)) content.answer = textOf(answer.view as object as ChatCompletion);
}

class ListenedStream implements ChunkStream {
  readonly #inner: ChunkStream;
  readonly #content: TraceContent;

  constructor(inner: ChunkStream, content: TraceContent) {
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
    if (batch === null || (this.#content.answer?.length ?? 0) >= MAX_TEXT) return batch;
    let text = this.#content.answer ?? '';
    for (const { view } of batch.chunks) for (const choice of view.choices ?? []) text += choice.delta?.content ?? '';
    this.#content.answer = text.slice(0, MAX_TEXT);
    return batch;
  }
}

function textOf(completion: ChatCompletion): string {
  return completion.choices
    .map(({ message }) => (typeof message?.content === 'string' ? message.content : ''))
    .join('\n')
    .slice(0, MAX_TEXT);
}

function cut(value: unknown): unknown {
  if (typeof value === 'string') return value.length > MAX_TEXT ? `${value.slice(0, MAX_TEXT)}… (${value.length} characters)` : value;
  if (Array.isArray(value)) return value.map(cut);
  if (isRecord(value)) return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, cut(part)]));
  return value;
}

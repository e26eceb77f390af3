import type { Exchange } from '../contracts/exchange.ts';
import type { Batch, ChunkStream, Outcome } from '../contracts/stream.ts';
import type { ChatChunk, ChatCompletion, ChatMessage, Choice } from '../wire/chat.ts';
import { CompletionBuilder, tooLarge } from '../wire/collect.ts';
import { isRecord, parseJson } from '../wire/json.ts';

async function end(stream: ChunkStream): Promise<never> {
  const error = tooLarge();
  await stream.cancel(error);
  throw error;
}

/** Batches are folded in so many at a time: parsing waits for the tail where it can, but a long answer must not keep every packet that brought it. */
const FOLD = 256;

export interface CapturedAnswer {
  message: ChatMessage;
  partial: boolean;
}

/** What of an answer is stored, from its stream or its body. */
export class AnswerCapture {
  readonly #builder = new CompletionBuilder();
  readonly #maxSize: number;
  #batches: Batch[] = [];

  /** `maxSize`: characters; an answer beyond it ends as an error. */
  constructor(maxSize: number) {
    this.#maxSize = maxSize;
  }

  watch(stream: ChunkStream): ChunkStream {
    const keep = (batch: Batch | null): Batch | null | Promise<never> => {
      if (batch === null) return null;
      this.#batches.push(batch);
      if (this.#batches.length >= FOLD) this.#fold();
      return this.#builder.size > this.#maxSize ? end(stream) : batch;
    };
    return {
      read() {
        const batch = stream.read();
        return batch instanceof Promise ? batch.then(keep) : keep(batch);
      },
      cancel: (reason) => stream.cancel(reason),
    };
  }

  /** Undefined: nothing is stored of it. */
  take(exchange: Exchange, outcome: Outcome): CapturedAnswer | undefined {
    this.#fold();
    const { answer } = exchange;
    if (answer === undefined || outcome.status === 'failed') return undefined;
    const partial = outcome.status === 'aborted';
    // Only a client that broke a stream off has seen something of it.
    if (partial && (!exchange.wants.stream || (outcome.error !== undefined && outcome.error.code !== 'client_closed'))) return undefined;
    if (!partial && (answer.error || answer.status >= 400)) return undefined;
    const choices = this.#builder.empty ? choicesOf(answer.view) : this.#builder.build().choices;
    // Of several choices the first is the conversation.
    const message = choices.toSorted((a, b) => a.index - b.index)[0]?.message;
    if (message === undefined) return undefined;
    const said = this.#withoutRounds(message, exchange.turnMessages ?? []);
    return partial ? brokenOff(said, exchange) : { message: toStored(said), partial: false };
  }

  /** All of the answer, for forms that give it again as it was. */
  whole({ answer }: Exchange): ChatCompletion | undefined {
    if (!this.#builder.empty) return this.#builder.build();
    const view = answer?.view;
    return isRecord(view) && Array.isArray(view.choices) ? (view as ChatCompletion) : undefined;
  }

  #fold(): void {
    const batches = this.#batches;
    this.#batches = [];
    for (const chunk of relayedChunks(batches) ?? batches.flatMap((batch) => batch.chunks.map(({ view }) => view))) this.#builder.add(chunk);
  }

  /** A stream's text begins with what the model said in earlier rounds; that is stored with these. */
  #withoutRounds(message: ChatMessage, rounds: readonly ChatMessage[]): ChatMessage {
    if (rounds.length === 0 || this.#builder.empty) return message;
    const rest = { ...message };
    for (const field of ['content', 'reasoning_content'] as const) {
      const earlier = rounds.map((round) => (round.role === 'assistant' && typeof round[field] === 'string' ? round[field] : '')).join('');
      const text = rest[field];
      if (earlier !== '' && typeof text === 'string' && text.startsWith(earlier)) rest[field] = text.slice(earlier.length);
    }
    return rest;
  }
}

/**
 * All events of these batches parsed as one JSON text: a third of what cutting and parsing them one by one takes. Undefined where they
 * are not all plain one-line data events as they came.
 */
function relayedChunks(batches: readonly Batch[]): ChatChunk[] | undefined {
  const bytes: Uint8Array[] = [];
  for (const batch of batches) {
    if (batch.bytes === undefined || batch.form !== 'openai-chat') return undefined;
    bytes.push(batch.bytes);
  }
  const text = Buffer.concat(bytes).toString('utf8').trimEnd();
  if (!text.startsWith('data:')) return undefined;
  const events = text.split('\n\n');
  for (const [index, event] of events.entries()) {
    if (!event.startsWith('data:') || event.includes('\n') || event.includes('\r')) return undefined;
    events[index] = event.slice(5);
  }
  try {
    // Each event was read as a chunk before it was relayed.
    return parseJson(`[${events.join(',')}]`) as ChatChunk[];
  } catch {
    return undefined;
  }
}

/** A call whose arguments were cut is none; without a word of text there is nothing to store. */
function brokenOff(message: ChatMessage, exchange: Exchange): CapturedAnswer | undefined {
  const { tool_calls: _calls, ...rest } = toStored(message);
  const finished = exchange.turnMessages?.length ?? 0;
  return rest.content || rest.reasoning_content || finished > 0 ? { message: rest, partial: true } : undefined;
}

function choicesOf(view: unknown): Choice[] {
  return isRecord(view) && Array.isArray(view.choices) ? view.choices : [];
}

/** What upstreams do not take back, or what says nothing, is not kept. */
function toStored(message: ChatMessage): ChatMessage {
  const stored: ChatMessage = { role: 'assistant', content: message.content ?? null };
  for (const [key, value] of Object.entries(message)) {
    if (key in stored || key === 'annotations' || value === null || value === undefined || value === '') continue;
    if (Array.isArray(value)) {
      const items = value.filter((item) => item !== undefined && item !== null);
      if (items.length > 0) stored[key] = items;
    } else {
      stored[key] = key === 'audio' && isRecord(value) ? { id: value.id } : value;
    }
  }
  return stored;
}

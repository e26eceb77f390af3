import type { Batch, Chunk, Form } from '../contracts/stream.ts';
import type { ChatChunk } from './chat.ts';
import { parseJson, stringifyJson } from './json.ts';
import { cutEvents, readEvent } from './sse.ts';

/** An event that came from an upstream: parsed when looked at, its bytes kept until it is found changed. */
class RelayedChunk implements Chunk {
  readonly form: Form;
  readonly #event: Buffer;
  #view: ChatChunk | undefined;
  /** Serialisation at hand-out: what a change is told by. */
  #handedOut: string | undefined;
  #replaced = false;

  constructor(event: Buffer, form: Form, view?: ChatChunk) {
    this.#event = event;
    this.form = form;
    this.#view = view;
  }
  get view(): ChatChunk {
    this.#view ??= parseJson(readEvent(this.#event).data ?? '{}') as ChatChunk;
    return this.#view;
  }
  get data(): ChatChunk {
    const view = this.view;
    this.#handedOut ??= JSON.stringify(view);
    return view;
  }
  set data(value: ChatChunk) {
    this.#view = value;
    this.#replaced = true;
  }
  get raw(): Uint8Array | undefined {
    if (this.#replaced) return undefined;
    return this.#handedOut === undefined || this.#handedOut === JSON.stringify(this.#view) ? this.#event : undefined;
  }
}

/** An event that was made here. */
class MadeChunk implements Chunk {
  readonly form: Form = 'openai-chat';
  readonly raw = undefined;
  data: ChatChunk;
  constructor(data: ChatChunk) {
    this.data = data;
  }
  get view(): ChatChunk {
    return this.data;
  }
}

class RelayedBatch implements Batch {
  readonly bytes: Buffer;
  readonly marked: boolean;
  readonly form: Form = 'openai-chat';
  #chunks: Chunk[] | undefined;
  constructor(bytes: Buffer, marked: boolean) {
    this.bytes = bytes;
    this.marked = marked;
  }
  get chunks(): readonly Chunk[] {
    this.#chunks ??= cutEvents(this.bytes).map((event) => new RelayedChunk(event, 'openai-chat'));
    return this.#chunks;
  }
}

class CutBatch implements Batch {
  readonly bytes = undefined;
  readonly marked: boolean;
  readonly form: Form;
  readonly chunks: readonly Chunk[];
  constructor(chunks: readonly Chunk[], form: Form) {
    this.chunks = chunks;
    this.form = form;
    this.marked = chunks.some((chunk) => isMarked(chunk.view));
  }
}

function isMarked(chunk: ChatChunk): boolean {
  return Boolean(chunk.usage || chunk.error || chunk.choices?.some((choice) => choice.finish_reason));
}

/** Events in OpenAI's form as they came: no comments, no terminal marker, each with a blank line. */
export function toBatch(bytes: Buffer, marked: boolean): Batch {
  return new RelayedBatch(bytes, marked);
}
/** Chunks that were cut, translated or made. */
export function batchOf(chunks: readonly Chunk[], form: Form = 'openai-chat'): Batch {
  return new CutBatch(chunks, form);
}
/** An upstream's event together with its canonical counterpart. */
export function toChunk(event: Buffer, form: Form, view: ChatChunk): Chunk {
  return new RelayedChunk(event, form, view);
}
export function makeChunk(data: ChatChunk): Chunk {
  return new MadeChunk(data);
}
/** The event of a chunk in OpenAI's form. */
export function toChatEvent(chunk: Chunk): Uint8Array {
  const raw = chunk.form === 'openai-chat' ? chunk.raw : undefined;
  return raw ?? Buffer.from(`data: ${stringifyJson(chunk.view)}\n\n`);
}

class TranslatedBatch implements Batch {
  readonly bytes: Buffer;
  readonly marked: boolean;
  readonly form: Form;
  readonly chunks: readonly Chunk[];
  constructor(bytes: Buffer, chunks: readonly Chunk[], form: Form) {
    this.bytes = bytes;
    this.chunks = chunks;
    this.form = form;
    this.marked = chunks.some((chunk) => isMarked(chunk.view));
  }
}
/** Events of another form as they came, those without a canonical counterpart too, beside their translations. */
export function translatedBatch(bytes: Buffer, chunks: readonly Chunk[], form: Form): Batch {
  return new TranslatedBatch(bytes, chunks, form);
}

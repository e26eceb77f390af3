import type { Batch, Chunk, Form } from '../contracts/stream.ts';
import type { ChatChunk } from './chat.ts';
import { parseJson, stringifyJson } from './json.ts';
import { cutEvents, readEvent } from './sse.ts';

const BLANK_LINE = '\n\n';

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
    this.#view ??= parseChunk(this.#event);
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

/**
 * What is relayed was not parsed on its way, only looked over: the event may be broken all the same. Then its bytes are the client's to judge, and
 * nobody here finds anything in it; the books must not fail for it.
 */
function parseChunk(event: Buffer): ChatChunk {
  try {
    return parseJson(readEvent(event).data ?? '{}') as ChatChunk;
  } catch {
    return { id: '', object: 'chat.completion.chunk', created: 0, model: '', choices: [] };
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
  readonly #cut: Chunk[] = [];
  /** How far it is cut. */
  #end = 0;
  constructor(bytes: Buffer, marked: boolean) {
    this.bytes = bytes;
    this.marked = marked;
  }
  get chunks(): readonly Chunk[] {
    if (this.#end < this.bytes.length) {
      for (const event of cutEvents(this.bytes.subarray(this.#end))) this.#cut.push(new RelayedChunk(event, 'openai-chat'));
      this.#end = this.bytes.length;
    }
    return this.#cut;
  }
  some(predicate: (chunk: Chunk) => boolean): boolean {
    if (this.#cut.some(predicate)) return true;
    for (let at = this.bytes.indexOf(BLANK_LINE, this.#end); at >= 0; at = this.bytes.indexOf(BLANK_LINE, this.#end)) {
      const end = at + BLANK_LINE.length;
      const chunk = new RelayedChunk(this.bytes.subarray(this.#end, end), 'openai-chat');
      this.#cut.push(chunk);
      this.#end = end;
      if (predicate(chunk)) return true;
    }
    return this.#end < this.bytes.length && this.chunks.slice(this.#cut.length - 1).some(predicate);
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

/** Does a chunk fit? Cuts no more of the batch than it must: what is looked for is mostly among the first. */
export function someChunk(batch: Batch, predicate: (chunk: Chunk) => boolean): boolean {
  return batch instanceof RelayedBatch ? batch.some(predicate) : batch.chunks.some(predicate);
}

// What the edge must look at: a quote inside a JSON string is always escaped, so that nothing a model says looks like one of these.
const MARK = /"(?:usage|error)": *[^n ]|"finish_reason": *"/;

/** The events before the first one with a mark in it, to be sent as they came, and the rest. Undefined: there are none before it. */
export function splitAtMark(bytes: Uint8Array): { lead: Uint8Array; rest: Batch } | undefined {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const mark = buffer.toString('latin1').search(MARK);
  const start = mark < 0 ? -1 : buffer.lastIndexOf(BLANK_LINE, mark);
  if (start < 0) return undefined;
  const end = start + BLANK_LINE.length;
  return { lead: buffer.subarray(0, end), rest: new RelayedBatch(buffer.subarray(end), true) };
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

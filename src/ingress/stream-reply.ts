import type { ServerResponse } from 'node:http';
import type { Door } from '../contracts/door.ts';
import { HermesError, toHermesError } from '../contracts/errors.ts';
import type { Answer, Exchange } from '../contracts/exchange.ts';
import type { Batch, Chunk, ChunkStream, Outcome, Writer } from '../contracts/stream.ts';
import { makeChunk, splitAtMark } from '../wire/batch.ts';
import { type ChatChunk, hasContent, type Usage } from '../wire/chat.ts';
import { ChatEventWriter } from '../wire/chat-event-writer.ts';
import { cancelQuietly } from '../wire/streams.ts';
import { toMarks } from './hermes-object.ts';

export interface StreamReply {
  exchange: Exchange;
  answer: Answer;
  door: Door;
  response: ServerResponse;
  writeTimeoutMs: number;
  /** The `hermes` object for the last chunk; undefined: none. */
  hermes: () => Record<string, unknown> | undefined;
  onFirstContent: () => void;
}

/**
 * The edge of a stream: reads to its end, always, also when the client is gone. Relays whole batches where it can; takes
 * usage that nobody asked for out; holds the finish event until the end where something must be durable or added first;
 * writes the terminal marker, or the one error event.
 * Gives the error that the stream ended with.
 */
export async function replyStream(reply: StreamReply): Promise<HermesError | undefined> {
  return new StreamEdge(reply).run();
}

/** What is at hand is written when it is as much as this. */
const ONE_WRITE_BYTES = 65_536;

class StreamEdge {
  readonly #reply: StreamReply;
  readonly #writer: Writer;
  readonly #events = new ChatEventWriter();
  readonly #native: boolean;
  /** Another form's events may go out as they came: nothing has to be added to them. */
  readonly #relays: boolean;
  /** The finish event waits for the end. */
  readonly #holds: boolean;
  #tail: Chunk[] = [];
  /** Not written yet. */
  #ready: Uint8Array[] = [];
  #readyBytes = 0;
  #holding = false;
  #usage: Chunk | undefined;
  #marksDue: boolean;
  #contentSeen = false;
  #head: ChatChunk | undefined;
  /** The upstream says `usage: null` on every chunk, because hermes has asked for usage and the caller has not. */
  #nullUsage: boolean | undefined;

  constructor(reply: StreamReply) {
    this.#reply = reply;
    const { exchange, answer, door } = reply;
    this.#writer = door.createWriter(exchange, answer.facts);
    this.#native = door.form === 'openai-chat';
    this.#relays = !this.#native && answer.facts.degraded !== true;
    this.#marksDue = answer.facts.degraded === true;
    this.#holds = answer.holdFinish || exchange.wants.verbose || this.#marksDue;
  }

  async run(): Promise<HermesError | undefined> {
    const { answer, exchange, response } = this.#reply;
    const stream = answer.stream as ChunkStream;
    let error: HermesError | undefined;
    try {
      for (;;) {
        const next = stream.read();
        // What is at hand goes out together: with the head before it, and with the end if that has come as well.
        if (next instanceof Promise && !this.#flush()) await this.#drained();
        const batch = next instanceof Promise ? await next : next;
        if (batch === null) break;
        const bytes = this.#pass(batch);
        if (bytes === undefined || bytes.length === 0) continue;
        this.#ready.push(bytes);
        this.#readyBytes += bytes.length;
        if (this.#readyBytes >= ONE_WRITE_BYTES && !this.#flush()) await this.#drained();
      }
    } catch (thrown) {
      error = toHermesError(thrown);
      // A fault of the edge itself leaves a stream that nobody would read on; one that failed by itself is over already.
      await cancelQuietly(stream, error);
    }
    const outcome: Outcome = error ? { status: 'failed', error } : { status: 'complete' };
    const hermes = exchange.wants.verbose && !error ? this.#reply.hermes() : undefined;
    const end = Buffer.concat([
      ...this.#ready,
      ...(error ? [] : [this.#ending(hermes)]),
      this.#writer.end(outcome, { ...answer.facts, requestId: answer.facts.requestId ?? exchange.id }, hermes),
    ]);
    if (!response.destroyed && !response.writableEnded) response.end(end);
    return error;
  }

  /** False: the client has not read what it was sent. */
  #flush(): boolean {
    const { response } = this.#reply;
    const [first] = this.#ready;
    if (first === undefined) {
      response.flushHeaders();
      return true;
    }
    const bytes = this.#ready.length === 1 ? first : Buffer.concat(this.#ready);
    this.#ready = [];
    this.#readyBytes = 0;
    return response.write(bytes);
  }

  /** The bytes to send now. */
  #pass(batch: Batch): Uint8Array | undefined {
    if (!this.#contentSeen) this.#lookForContent(batch);
    if (this.#native && !this.#holding && !this.#marksDue && batch.form === 'openai-chat' && batch.bytes !== undefined) {
      if (!batch.marked) return this.#withoutNullUsage(batch.bytes);
      const split = splitAtMark(batch.bytes);
      if (split) return joined(this.#withoutNullUsage(split.lead), this.#passChunks(split.rest));
    }
    const relayed = this.#relays && batch.form === this.#reply.door.form && batch.bytes !== undefined ? this.#writer.relay?.(batch) : undefined;
    return relayed ?? this.#passChunks(batch);
  }

  #passChunks(batch: Batch): Uint8Array {
    const out: Chunk[] = [];
    for (const chunk of batch.chunks) {
      const passed = this.#takeUsage(chunk);
      if (passed === undefined) continue;
      if (this.#holds && (this.#holding || isFinish(passed.view))) {
        this.#holding = true;
        this.#tail.push(passed);
      } else out.push(this.#mark(passed));
    }
    return this.#toEvents(out);
  }

  #withoutNullUsage(bytes: Uint8Array): Uint8Array {
    if (this.#reply.exchange.wants.usage) return bytes;
    this.#nullUsage ??= findNullUsage(bytes, 0) >= 0;
    return this.#nullUsage ? cutNullUsage(bytes) : bytes;
  }

  #lookForContent(batch: Batch): void {
    // A relayed batch is not parsed for this: lifecycle frames are held back inside, what comes first has content in it.
    if (batch.bytes === undefined && !batch.chunks.some(({ view }) => hasContent(view))) return;
    this.#contentSeen = true;
    this.#reply.onFirstContent();
  }

  /** Usage goes on one last chunk with `choices: []`, and only to who asked for it. */
  #takeUsage(chunk: Chunk): Chunk | undefined {
    const { view } = chunk;
    this.#head ??= view;
    if (!view.usage) return view.usage === null && !this.#reply.exchange.wants.usage && this.#native ? makeChunk(withoutUsage(view)) : chunk;
    const bare = (view.choices?.length ?? 0) === 0;
    if (!this.#native) return chunk;
    this.#usage = bare ? chunk : makeChunk(toUsageChunk(view, view.usage));
    if (bare) return undefined;
    return makeChunk(withoutUsage(view));
  }

  #mark(chunk: Chunk): Chunk {
    if (!this.#marksDue) return chunk;
    this.#marksDue = false;
    return makeChunk({ ...chunk.view, ...toMarks(this.#reply.answer.facts) });
  }

  #toEvents(chunks: readonly Chunk[]): Uint8Array {
    return this.#native ? this.#events.write(chunks) : Buffer.concat(chunks.map((chunk) => this.#writer.write(chunk.view)));
  }

  /** Held events, usage, and on the very last one what hermes has to say. */
  #ending(hermes: Record<string, unknown> | undefined): Uint8Array {
    const { answer, exchange } = this.#reply;
    const chunks = [...this.#tail];
    const { usage } = answer.facts;
    if (this.#native && exchange.wants.usage) {
      const last = this.#usage ?? (usage && this.#head ? makeChunk(toUsageChunk(this.#head, usage)) : undefined);
      if (last) chunks.push(last);
    }
    const more = { ...toMarks(answer.facts), ...(this.#native && hermes ? { hermes } : {}) };
    if (Object.keys(more).length > 0) {
      const last = chunks.pop();
      const base = last?.view ?? (this.#head ? toUsageChunk(this.#head, undefined) : undefined);
      if (base) chunks.push(makeChunk({ ...base, ...more }));
    }
    return this.#toEvents(chunks);
  }

  /** A client that does not read must not hold an upstream for ever. */
  #drained(): Promise<void> {
    const { response, exchange, writeTimeoutMs } = this.#reply;
    if (response.destroyed) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        response.off('drain', done).off('close', done);
        resolve();
      };
      const timer = setTimeout(() => {
        exchange.cancel(new HermesError('client_closed', 'The client does not read.'));
        response.destroy();
        done();
      }, writeTimeoutMs);
      response.on('drain', done).on('close', done);
    });
  }
}

function joined(lead: Uint8Array, rest: Uint8Array): Uint8Array {
  return rest.length === 0 ? lead : Buffer.concat([lead, rest]);
}

function withoutUsage(chunk: Readonly<ChatChunk>): ChatChunk {
  const { usage: _usage, ...rest } = chunk;
  return rest as ChatChunk;
}

/** A quote inside a JSON string is always escaped: nothing that a model says looks like this. */
const NULL_USAGE = Buffer.from(',"usage":null');

function findNullUsage(bytes: Uint8Array, from: number): number {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).indexOf(NULL_USAGE, from);
}

function cutNullUsage(bytes: Uint8Array): Uint8Array {
  const out = Buffer.allocUnsafe(bytes.byteLength);
  let size = 0;
  let from = 0;
  for (let at = findNullUsage(bytes, 0); at >= 0; at = findNullUsage(bytes, from)) {
    out.set(bytes.subarray(from, at), size);
    size += at - from;
    from = at + NULL_USAGE.length;
  }
  out.set(bytes.subarray(from), size);
  return out.subarray(0, size + bytes.byteLength - from);
}

function isFinish(chunk: Readonly<ChatChunk>): boolean {
  return Boolean(chunk.choices?.some((choice) => choice.finish_reason));
}

function toUsageChunk(head: Readonly<ChatChunk>, usage: Usage | undefined): ChatChunk {
  const { id, created, model, system_fingerprint } = head;
  return {
    id,
    object: 'chat.completion.chunk',
    created,
    model,
    ...(system_fingerprint ? { system_fingerprint } : {}),
    choices: [],
    ...(usage ? { usage } : {}),
  };
}

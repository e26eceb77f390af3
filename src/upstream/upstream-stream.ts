import { HermesError, toHermesError } from '../contracts/errors.ts';
import type { Facts } from '../contracts/exchange.ts';
import type { Batch, ChunkStream } from '../contracts/stream.ts';
import { messageText } from '../wire/chat.ts';
import { CompletionBuilder } from '../wire/collect.ts';
import type { CallRecord } from './call-record.ts';
import type { OpenCall } from './open-call.ts';
import type { Relay } from './relay.ts';

/** After its finish reason an answer is whole; usage and the terminal marker get this long, for some leave the socket open. */
const TAIL_MS = 1000;
/** How long a connection may take to end by itself after the terminal marker, to be used again. */
const GRACE_MS = 500;
/** What is kept for an estimate, in case no usage comes. */
const MAX_KEPT_BYTES = 4_194_304;

export interface UpstreamStreamOptions {
  open: OpenCall;
  relay: Relay;
  record: CallRecord;
  facts: Facts;
  status: number;
  /** performance.now(): the first content must be there. */
  firstContentUntil: number;
  /** Between chunks. */
  idleMs: number;
  /** The call is over: nobody needs to be told of a cancellation any more. */
  over: () => void;
}

/** An upstream's answer while it comes in. Ends its call, and books it, the moment that the answer is whole, fails or is cancelled. */
export class UpstreamStream implements ChunkStream {
  readonly #options: UpstreamStreamOptions;
  readonly #relay: Relay;
  #until: number;
  #tailUntil: number | undefined;
  #firstTokenAt: number | undefined;
  #kept: Batch[] = [];
  #keptBytes = 0;
  #bytes = 0;
  #over = false;
  #error: HermesError | undefined;

  constructor(options: UpstreamStreamOptions) {
    this.#options = options;
    this.#relay = options.relay;
    this.#until = options.firstContentUntil;
  }

  read(): Batch | null | Promise<Batch | null> {
    if (this.#error) throw this.#error;
    if (this.#over) return null;
    if (this.#relay.begun && this.#tailUntil === undefined) this.#until = performance.now() + this.#options.idleMs;
    return this.#next();
  }

  cancel(reason: HermesError = new HermesError('client_closed', 'The client closed the connection.')): void {
    if (this.#over) return;
    this.#options.open.abort(reason);
    this.#end(reason);
  }

  #next(): Batch | null | Promise<Batch | null> {
    let piece: Buffer | null | Promise<Buffer | null>;
    try {
      piece = this.#options.open.read(this.#until);
    } catch (thrown) {
      return this.#broken(toHermesError(thrown));
    }
    return piece instanceof Promise ? this.#wait(piece) : (this.#accept(piece) ?? this.#onward());
  }

  async #wait(coming: Promise<Buffer | null>): Promise<Batch | null> {
    const from = performance.now();
    let piece: Buffer | null;
    try {
      piece = await coming;
    } catch (thrown) {
      return this.#broken(toHermesError(thrown));
    } finally {
      this.#options.facts.waitedMs = (this.#options.facts.waitedMs ?? 0) + performance.now() - from;
    }
    // Cancelled in the meantime: the reason counts, not what came.
    if (this.#error) throw this.#error;
    return this.#accept(piece) ?? this.#onward();
  }

  /** Nothing for the reader in what came, or the end. */
  #onward(): Batch | null | Promise<Batch | null> {
    if (this.#error) throw this.#error;
    return this.#over ? null : this.#next();
  }

  #accept(piece: Buffer | null): Batch | undefined {
    const relay = this.#relay;
    const batch = piece === null ? relay.end() : relay.push(piece);
    if (batch) this.#keep(batch);
    if (relay.begun) {
      this.#firstTokenAt ??= performance.now();
      // Comments are no progress: a limit that waits for chunks goes on.
      if (!relay.quiet && this.#tailUntil === undefined) this.#until = performance.now() + this.#options.idleMs;
    }
    if (relay.finished && this.#tailUntil === undefined) {
      this.#tailUntil = performance.now() + TAIL_MS;
      this.#until = this.#tailUntil;
    }
    if (relay.failure) this.#fail(relay.failure, piece !== null);
    else if (relay.done || piece === null) this.#complete();
    return batch;
  }

  #keep(batch: Batch): void {
    this.#noteFacts();
    const size = batch.bytes?.byteLength ?? batch.chunks.reduce((sum, chunk) => sum + (chunk.raw?.byteLength ?? 200), 0);
    this.#bytes += size;
    if (this.#relay.usage) this.#kept = [];
    else if (this.#keptBytes + size <= MAX_KEPT_BYTES) {
      this.#kept.push(batch);
      this.#keptBytes += size;
    }
  }

  /** Silence and a torn connection are no failure once the finish reason is there. */
  #broken(error: HermesError): Batch | null {
    if (this.#error) throw this.#error;
    if (!this.#over && this.#relay.finished && (error.code === 'upstream_timeout' || error.code === 'upstream_error')) {
      this.#complete();
      return null;
    }
    this.#end(error);
    throw this.#error ?? error;
  }

  #complete(): void {
    this.#options.open.release(GRACE_MS);
    this.#end(undefined);
  }

  #fail(error: HermesError, open: boolean): void {
    if (open) this.#options.open.abort(error);
    this.#end(error);
  }

  #end(error: HermesError | undefined): void {
    if (this.#over) return;
    this.#over = true;
    this.#error = error;
    this.#noteFacts();
    const { record, over, status } = this.#options;
    over();
    const { usage, begun, finished } = this.#relay;
    // Who leaves after the finish reason has had the answer.
    const failed = finished && error?.code === 'client_closed' ? undefined : error;
    record.end({
      status,
      error: failed,
      answered: begun || (finished && !error),
      usage,
      answeredBytes: () => this.#answeredBytes(),
      firstTokenAt: this.#firstTokenAt,
    });
    this.#kept = [];
  }

  #noteFacts(): void {
    const { facts } = this.#options;
    const { usage, finishReason, upstreamFinishReason } = this.#relay;
    if (usage) facts.usage = usage;
    if (finishReason) facts.finishReason = finishReason;
    if (upstreamFinishReason) facts.upstreamFinishReason = upstreamFinishReason;
  }

  #answeredBytes(): number {
    const builder = new CompletionBuilder();
    for (const batch of this.#kept) for (const chunk of batch.chunks) builder.add(chunk.view);
    let bytes = 0;
    for (const { message } of builder.build().choices) {
      bytes += Buffer.byteLength(messageText(message)) + Buffer.byteLength(message.reasoning_content ?? '');
      for (const call of message.tool_calls ?? [])
        bytes += call ? Buffer.byteLength(call.function ? call.function.name + call.function.arguments : JSON.stringify(call)) : 0;
    }
    // Too much to keep: the rest at the ratio of what was kept.
    return this.#keptBytes < this.#bytes && this.#keptBytes > 0 ? Math.round((bytes * this.#bytes) / this.#keptBytes) : bytes;
  }
}

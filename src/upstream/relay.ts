import { HermesError } from '../contracts/errors.ts';
import type { Provider, UpstreamCall } from '../contracts/provider.ts';
import type { Batch } from '../contracts/stream.ts';
import type { ChatChunk, Usage } from '../wire/chat.ts';
import { hasContent } from '../wire/chat.ts';
import { SseSplitter } from '../wire/sse.ts';
import { upstreamFinishOf } from '../wire/upstream-finish.ts';
import { isUsage } from '../wire/usage.ts';
import { ChoiceStates } from './mend.ts';

export interface RelayOptions {
  provider: Provider;
  call: UpstreamCall;
  /** How many choices were asked for. */
  choices: number;
  /** One event's bound. */
  maxEventBytes: number;
  /** Unix seconds, for upstreams whose form does not tell when an answer was made. */
  created?: number;
}

/** Turns what an upstream's socket gives into batches, and notes on the way what hermes must know. Pure: no sockets, no clock. */
export abstract class Relay {
  readonly states = new ChoiceStates();
  readonly #splitter: SseSplitter;
  readonly #choices: number;
  /** Text, reasoning or a tool call has come: from here on this stream cannot be exchanged for another. */
  begun = false;
  /** A content was given, if an empty one. */
  said = false;
  /** The terminal marker has come. */
  done = false;
  /** The last push brought comments only. */
  quiet = false;
  /** Anything that was an event at all. */
  heard = false;
  usage: Usage | undefined;
  upstreamFinishReason: string | undefined;
  /** What ended the stream, after the batch that was given. */
  failure: HermesError | undefined;

  constructor(options: RelayOptions) {
    this.#splitter = new SseSplitter(options.maxEventBytes);
    this.#choices = options.choices;
  }

  /** Every choice has its finish reason: nothing but usage and the terminal marker can follow. */
  get finished(): boolean {
    return this.states.finished(this.#choices);
  }
  /** The beginning is over: text has come, and every choice has been seen once. */
  protected get settled(): boolean {
    return this.begun && (this.#choices === 1 || this.states.size >= this.#choices);
  }
  get finishReason(): string | undefined {
    return this.states.firstFinish;
  }

  /** Whole events out of one read of the socket. After it, look at `failure` and `done`. */
  push(piece: Buffer): Batch | undefined {
    this.quiet = false;
    try {
      const run = this.#splitter.push(piece);
      return run && this.take(run, false);
    } catch (thrown) {
      this.failure = thrown instanceof RangeError ? tooLarge() : toError(thrown);
      return undefined;
    }
  }

  /** The socket is at its end: the last event's blank line may be missing. */
  end(): Batch | undefined {
    const rest = this.#splitter.flush();
    let batch: Batch | undefined;
    try {
      batch = rest && this.take(rest, true);
    } catch (thrown) {
      this.failure = toError(thrown);
    }
    this.failure ??= this.#verdict();
    return batch;
  }

  /** `last`: what stands there may be the torn half of an event, and is not one then. */
  protected abstract take(run: Buffer, last: boolean): Batch | undefined;

  protected note(chunk: Readonly<ChatChunk>): void {
    this.heard = true;
    this.states.note(chunk);
    if (isUsage(chunk.usage)) this.usage = chunk.usage;
    for (const choice of chunk.choices ?? []) {
      // Moonshot's usage stands in the choice.
      if (isUsage(choice.usage)) this.usage ??= choice.usage;
      if (choice.finish_reason) this.upstreamFinishReason ??= upstreamFinishOf(chunk) ?? choice.finish_reason;
      if (typeof choice.delta?.content === 'string' || choice.delta?.tool_calls) this.said = true;
    }
    this.begun ||= hasContent(chunk);
  }

  /** An answer that is finished before anything was in it is none; silence for a reason is one. */
  protected emptyAtFinish(): boolean {
    const reason = this.finishReason;
    return !this.begun && !this.said && reason !== 'length' && reason !== 'content_filter';
  }

  #verdict(): HermesError | undefined {
    if (this.done || this.states.finished(1)) return this.states.anyFinished && !this.emptyAtFinish() ? undefined : emptyAnswer();
    if (!this.begun) return emptyAnswer();
    return new HermesError('upstream_error', 'The stream of the model broke off before its answer was whole; try again.');
  }
}

export function emptyAnswer(): HermesError {
  return new HermesError('upstream_empty_answer', 'The model answered without an answer in it; try again.');
}
function tooLarge(): HermesError {
  return new HermesError('upstream_error', 'The model sent one event larger than server.max_event_bytes allows.');
}
function toError(thrown: unknown): HermesError {
  return thrown instanceof HermesError
    ? thrown
    : new HermesError('upstream_error', 'The model sent an event that could not be read; try again.', { cause: thrown });
}

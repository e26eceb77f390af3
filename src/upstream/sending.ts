import { HermesError, toHermesError } from '../contracts/errors.ts';
import type { Answer, AnswerInit, Attempt, Exchange, Facts, UpstreamTarget } from '../contracts/exchange.ts';
import type { Provider, UpstreamCall } from '../contracts/provider.ts';
import type { Form } from '../contracts/stream.ts';
import type { Environment } from '../contracts/telemetry.ts';
import type { ChatCompletion, ChatRequest } from '../wire/chat.ts';
import { messageText } from '../wire/chat.ts';
import { collect, spread } from '../wire/collect.ts';
import { parseRetryAfter } from '../wire/retry-after.ts';
import { upstreamFinishOf } from '../wire/upstream-finish.ts';
import { isUsage } from '../wire/usage.ts';
import { type Books, CallRecord } from './call-record.ts';
import { createRelay } from './create-relay.ts';
import { failureOf } from './failure.ts';
import { LocalCall } from './local-call.ts';
import { isAnswer, mendCompletion } from './mend.ts';
import type { OpenCall, UpstreamClient, UpstreamHead } from './open-call.ts';
import { toRefusal } from './refusal.ts';
import { emptyAnswer } from './relay.ts';
import { UpstreamStream } from './upstream-stream.ts';

/** The words of a refusal are waited for no longer than this. */
const REFUSAL_MS = 2000;
/** A whole answer may be this many times as large as one event of a stream. */
const WHOLE_BODY_FACTOR = 4;

export interface SendDeps {
  client: UpstreamClient;
  /** By its file's name. */
  provider(name: string): Provider | undefined;
  environment: Environment;
  /** Hears of every call that was made, before its reader learns of the end. */
  books: Books;
  /** A whole answer that relays these bytes unless somebody changes its body. */
  rawAnswer(init: AnswerInit, raw: { bytes: Uint8Array; form: Form; parse?: () => unknown }): Answer;
}

/** What is sent, the same at every try that an upstream's refusal teaches. */
export interface Sent {
  exchange: Exchange;
  attempt: Attempt;
  /** Fitted to this target where a step did so. */
  request: ChatRequest;
  provider: Provider;
  facts: Facts;
  /** Called when an answer that was given as a stream is over on the upstream's side, however it ended. */
  over: () => void;
}

/** One call from its beginning to the head of its answer. */
export class Sending {
  readonly #deps: SendDeps;
  readonly #over: () => void;
  readonly #exchange: Exchange;
  readonly #target: UpstreamTarget;
  readonly #provider: Provider;
  readonly #call: UpstreamCall;
  readonly #request: ChatRequest;
  readonly #facts: Facts;
  readonly #record: CallRecord;
  readonly #open: OpenCall;
  readonly #notCancelled: () => void;
  #status: number | undefined;
  #stream: UpstreamStream | undefined;

  constructor(deps: SendDeps, { exchange, attempt, request, provider, facts, over }: Sent, call: UpstreamCall) {
    this.#deps = deps;
    this.#exchange = exchange;
    this.#over = over;
    this.#target = attempt.upstream;
    this.#provider = provider;
    this.#call = call;
    this.#request = request;
    this.#facts = facts;
    this.#record = new CallRecord(exchange, attempt, request, deps.environment, deps.books);
    this.#open = provider.answer ? new LocalCall(provider.answer.bind(provider), call) : deps.client.open(call);
    this.#notCancelled = exchange.onCancel((reason) => this.#cancel(reason));
  }

  async run(): Promise<Answer | AnswerInit> {
    const { start } = this.#record;
    const until = start + (this.#call.stream ? this.#target.firstTokenTimeoutMs : this.#target.timeoutMs);
    try {
      const head = await this.#open.head(until);
      this.#status = head.status;
      const shown = this.#provider.toHeaders?.(head.headers, this.#deps.environment.now());
      if (shown && Object.keys(shown).length > 0) this.#facts.upstreamHeaders = shown;
      this.#facts.waitedMs = (this.#facts.waitedMs ?? 0) + performance.now() - start;
      if (head.status < 200 || head.status >= 300) throw await this.#refused(head, until);
      const type = head.headers['content-type'] ?? '';
      const events = this.#call.stream ? !/\b(json|html|xml)\b/i.test(type) : /event-stream/i.test(type);
      if (events) return await this.#streamed(until);
      return await this.#whole(until);
    } catch (thrown) {
      const error = this.#exchange.cancelled ?? toHermesError(thrown);
      this.#open.abort(error);
      this.#end(error);
      throw error;
    }
  }

  /** Books at once: whoever cancelled may look at the calls before anybody reads again. */
  #cancel(reason: HermesError): void {
    if (this.#stream) {
      this.#stream.cancel(reason);
      return;
    }
    this.#open.abort(reason);
    this.#end(reason);
  }

  #end(error: HermesError | undefined, completion?: ChatCompletion): void {
    this.#notCancelled?.();
    const usage = completion && isUsage(completion.usage) ? completion.usage : undefined;
    const answeredBytes = (): number => (completion ? byteLengthOf(completion) : 0);
    this.#record.end({ status: this.#status, error, answered: completion !== undefined, usage, answeredBytes });
  }

  async #streamed(until: number): Promise<AnswerInit> {
    const relay = createRelay({
      provider: this.#provider,
      call: this.#call,
      choices: Math.max(1, this.#request.n ?? 1),
      maxEventBytes: this.#exchange.config.server.max_event_bytes,
      created: this.#nowSeconds,
    });
    const { firstTokenTimeoutMs, timeoutMs } = this.#target;
    const stream = new UpstreamStream({
      open: this.#open,
      relay,
      record: this.#record,
      facts: this.#facts,
      status: this.#status ?? 200,
      firstContentUntil: this.#call.stream ? this.#record.start + firstTokenTimeoutMs : until,
      idleMs: timeoutMs,
      over: () => {
        this.#notCancelled?.();
        this.#over();
      },
    });
    this.#stream = stream;
    // A server that streams without being asked: its answer is wanted whole.
    if (!this.#call.stream) return { body: await collect(stream, this.#maxWholeBytes), facts: this.#facts };
    return { stream, facts: this.#facts };
  }

  async #whole(until: number): Promise<Answer | AnswerInit> {
    const bytes = await this.#readAll(until, this.#maxWholeBytes);
    const completion = this.#translate(bytes);
    if (!isAnswer(completion)) throw emptyAnswer();
    if (this.#provider.form !== 'openai-chat') completion.created ||= this.#nowSeconds;
    const [choice] = completion.choices;
    const said = upstreamFinishOf(completion) ?? choice?.finish_reason;
    if (said) this.#facts.upstreamFinishReason = said;
    const mended = mendCompletion(completion);
    if (choice?.finish_reason) this.#facts.finishReason = choice.finish_reason;
    if (isUsage(completion.usage)) this.#facts.usage = completion.usage;
    this.#end(undefined, completion);
    if (this.#call.stream) {
      this.#over();
      return { stream: spread(completion), facts: this.#facts };
    }
    const translated = this.#call.context !== undefined && this.#provider.form === 'openai-chat';
    if (mended || translated) return { body: completion, facts: this.#facts };
    return this.#deps.rawAnswer({ facts: this.#facts }, { bytes, form: this.#provider.form, parse: () => completion });
  }

  /** An error object inside a 200 means what the same refusal with its right status would. */
  #translate(bytes: Buffer): ChatCompletion {
    try {
      return this.#provider.fromUpstream(bytes, this.#call);
    } catch (thrown) {
      const failure = thrown instanceof HermesError ? failureOf(thrown) : undefined;
      throw failure ? toRefusal(failure) : thrown;
    }
  }

  async #refused(head: UpstreamHead, until: number): Promise<HermesError> {
    if (head.failure) return toRefusal(head.failure);
    let bytes: Buffer = Buffer.alloc(0);
    try {
      bytes = await this.#readAll(Math.min(until, performance.now() + REFUSAL_MS), this.#exchange.config.server.max_event_bytes);
    } catch (thrown) {
      // The status alone says enough, unless we were told to stop or the body has no end.
      if (this.#exchange.cancelled) throw thrown;
    }
    const failure = this.#provider.toFailure(head.status, head.headers, bytes);
    const retryAfterMs = parseRetryAfter(head.headers, this.#deps.environment.now());
    // A redirect is not followed: it would carry the key and the prompt to wherever it points.
    const redirected = head.status >= 300 && head.status < 400;
    return toRefusal(redirected ? { ...failure, kind: 'redirected', status: head.status } : { ...failure, retryAfterMs });
  }

  async #readAll(until: number, maxBytes: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    let size = 0;
    for (;;) {
      const read = this.#open.read(until);
      const piece = read instanceof Promise ? await this.#waited(read) : read;
      if (piece === null) return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
      size += piece.length;
      if (size > maxBytes) throw new HermesError('upstream_error', 'The model sent an answer larger than hermes takes (server.max_event_bytes).');
      parts.push(piece);
    }
  }

  async #waited<T>(what: Promise<T>): Promise<T> {
    const from = performance.now();
    const value = await what;
    this.#facts.waitedMs = (this.#facts.waitedMs ?? 0) + performance.now() - from;
    return value;
  }

  get #nowSeconds(): number {
    return Math.floor(this.#deps.environment.now() / 1000);
  }
  get #maxWholeBytes(): number {
    return this.#exchange.config.server.max_event_bytes * WHOLE_BODY_FACTOR;
  }
}

function byteLengthOf(completion: ChatCompletion): number {
  let bytes = 0;
  for (const { message } of completion.choices) {
    bytes += Buffer.byteLength(messageText(message)) + Buffer.byteLength(message.reasoning_content ?? '');
    for (const call of message.tool_calls ?? []) bytes += Buffer.byteLength((call.function?.name ?? '') + (call.function?.arguments ?? ''));
  }
  return bytes;
}

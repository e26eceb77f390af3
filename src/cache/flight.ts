import { type HermesError, toHermesError } from '../contracts/errors.ts';
import type { Answer, AnswerInit, Exchange } from '../contracts/exchange.ts';
import type { Next } from '../contracts/plugin.ts';
import type { ChunkStream } from '../contracts/stream.ts';
import { type Shared, share } from '../wire/share.ts';
import { sizeOf } from '../wire/streams.ts';
import { bytesOf, KeptAnswer } from './kept-answer.ts';

export interface FlightDeps {
  /** Looks where looking takes time. */
  find(exchange: Exchange): Promise<KeptAnswer | undefined> | undefined;
  /** The answer is there, whole: `body` of one that came so, `shared` of a stream. Before anybody learns of the end. */
  landed(answer: Answer, source: { body?: Buffer; shared?: Shared }): void;
  /** Nobody may join any more. */
  over(): void;
  /** Others than its callers wait for the end: a slow caller must not hold them up. */
  awaited(): boolean;
  maxBytes: number;
}
/** A caller who joined was told the end of the answer. */
export type Joined = (facts: Answer['facts']) => void;

/** What one caller gets. `first`: it is the one whose request was sent. */
export interface Landing {
  first: boolean;
  answer: Answer | AnswerInit | KeptAnswer;
  /** The body of a whole answer, where several want it. */
  body?: Buffer | undefined;
}

/**
 * One request on its way, for all equal ones that come meanwhile. It runs in a fork of its own, so that the first caller may
 * leave; when the last has left it stops.
 */
export class Flight {
  readonly #deps: FlightDeps;
  readonly #fork: Exchange;
  readonly #head: Promise<Answer | KeptAnswer>;
  #body: Buffer | undefined;
  #shared: Shared | undefined;
  #answer: Answer | undefined;
  #callers = 0;
  #taken = false;
  #over = false;

  constructor(exchange: Exchange, next: Next, deps: FlightDeps) {
    this.#deps = deps;
    // One list for both: the session stores what tools have pushed on it.
    exchange.turnMessages ??= [];
    this.#fork = exchange.fork({ detached: true });
    this.#head = this.#run(next);
    this.#head.catch(() => undefined);
  }

  /** Its beginning is still held. */
  get joinable(): boolean {
    return !this.#over && (this.#shared?.whole ?? true);
  }

  /** Rejects when the caller leaves first. `joined` hears of the end of a stream that another one's request has brought. */
  join(exchange: Exchange, joined: Joined): Promise<Landing> {
    const first = !this.#taken;
    this.#taken = true;
    this.#callers++;
    return new Promise((resolve, reject) => {
      let stream: ChunkStream | undefined;
      let left = false;
      exchange.onCancel((reason) => {
        if (left) return;
        left = true;
        void stream?.cancel(reason);
        reject(reason);
        this.#leave(reason);
      });
      this.#head.then(
        (source) => {
          if (left) return;
          try {
            const landing = this.#land(source, first, joined);
            if (!(landing.answer instanceof KeptAnswer)) stream = landing.answer.stream;
            resolve(landing);
          } catch (thrown) {
            left = true;
            reject(thrown);
            this.#leave(toHermesError(thrown));
          }
        },
        (thrown) => reject(thrown),
      );
    });
  }

  #land(source: Answer | KeptAnswer, first: boolean, joined: Joined): Landing {
    if (source instanceof KeptAnswer) return { first: false, answer: source };
    const { status, headers, holdFinish, error } = source;
    const facts = first ? source.facts : { ...source.facts, requestId: undefined };
    const head = { status, headers: { ...headers }, holdFinish, error, facts };
    if (this.#shared) return { first, answer: { ...head, stream: first ? this.#shared.open() : withFacts(this.#shared.open(), facts, source, joined) } };
    return first ? { first, answer: source } : { first, answer: head, body: this.#body };
  }

  async #run(next: Next): Promise<Answer | KeptAnswer> {
    try {
      const found = await this.#deps.find(this.#fork);
      if (found) {
        this.#end();
        return found;
      }
      if (this.#fork.cancelled) throw this.#fork.cancelled;
      const answer = await next(this.#fork);
      this.#answer = answer;
      if (answer.stream && !this.#over) {
        this.#shared = share(answer.stream, { maxBytes: this.#deps.maxBytes, over: (error) => void this.#streamed(answer, error) });
        if (this.#deps.awaited()) void pull(this.#shared.open(), this.#deps.maxBytes);
        return answer;
      }
      if (!answer.error && !answer.stream) {
        // Taken before anybody gets the answer, which the first caller's outer steps may change.
        this.#body = bytesOf(answer);
        this.#deps.landed(answer, { body: this.#body });
      }
      this.#end();
      return answer;
    } catch (thrown) {
      this.#end();
      throw thrown;
    }
  }

  #streamed(answer: Answer, error: HermesError | undefined): void {
    if (this.#shared && error === undefined && !this.#fork.cancelled) this.#deps.landed(answer, { shared: this.#shared });
    this.#end();
  }

  #leave(reason: HermesError): void {
    this.#callers--;
    if (this.#callers > 0 || this.#over) return;
    this.#end();
    this.#fork.cancel(reason);
    void this.#answer?.stream?.cancel(reason);
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#deps.over();
  }
}

/** Reads ahead of the callers, as far as the answer may be kept. */
async function pull(stream: ChunkStream, maxBytes: number): Promise<void> {
  let bytes = 0;
  try {
    for (let batch = await stream.read(); batch !== null && bytes <= maxBytes; batch = await stream.read()) bytes += sizeOf(batch);
  } catch {
    // Each caller is told by its own reader.
  }
  await stream.cancel();
}

/** What is known of a stream only at its end is known to every reader then. */
function withFacts(stream: ChunkStream, facts: Answer['facts'], source: Answer, joined: Joined): ChunkStream {
  const ended = (batch: Awaited<ReturnType<ChunkStream['read']>>): typeof batch => {
    if (batch === null) {
      const { requestId: _theirs, ...known } = source.facts;
      Object.assign(facts, known);
      joined(facts);
    }
    return batch;
  };
  return {
    read() {
      const batch = stream.read();
      return batch instanceof Promise ? batch.then(ended) : ended(batch);
    },
    cancel: (reason) => stream.cancel(reason),
  };
}

import { HermesError, isAbort } from '../contracts/errors.ts';
import type { Answer, Exchange } from '../contracts/exchange.ts';
import type { Outcome } from '../contracts/stream.ts';
import { type Entry, type LayerFault, runEnds } from './entry.ts';
import { TappedStream } from './tapped-stream.ts';

export function settled(exchange: Exchange): Answer {
  exchange.answer ??= { error: new HermesError('internal_error', 'No step answered this request.') };
  return exchange.answer as Answer;
}

/** The root exchange, or a fork: its entered layers and their streams. */
export class Scope {
  readonly exchange: Exchange;
  readonly #entries: Entry[] = [];
  readonly #fault: LayerFault;
  readonly #streams: TappedStream[] = [];
  /** Steps that have been entered and not left. */
  inside = 0;

  constructor(exchange: Exchange, fault: LayerFault) {
    this.exchange = exchange;
    this.#fault = fault;
  }

  enter(entry: Entry): void {
    if (entry.layer.hooks.onEnd) this.#entries.push(entry);
  }

  /** A layer has unwound: its hooks go onto the stream that stands now; a whole body leaves them for `finish`. */
  pass(entry: Entry): Answer {
    this.inside--;
    const answer = settled(this.exchange);
    if (answer.stream && (entry.layer.hooks.onChunk || entry.layer.hooks.onEnd)) this.#tapped(answer).attach(entry);
    return answer;
  }

  readonly finish = (): Answer | Promise<Answer> => {
    const answer = settled(this.exchange);
    if (answer.stream) {
      for (const entry of this.#entries) if (!entry.attached) this.#tapped(answer).attach(entry);
      return answer;
    }
    const dropped = this.#streams.some(({ over }) => !over);
    return dropped || this.#entries.length > 0 ? this.#end(answer) : answer;
  };

  async #end(answer: Answer): Promise<Answer> {
    // A stream that a layer dropped for a whole body still has its ends to run.
    for (const stream of this.#streams) if (!stream.over) await stream.cancel(answer.error ?? new HermesError('superseded', 'Another answer took its place.'));
    const failed = await runEnds(this.#entries.reverse(), toOutcome(answer), this.#fault);
    if (failed) this.exchange.answer = { error: failed, facts: answer.facts };
    return settled(this.exchange);
  }

  #tapped(answer: Answer): TappedStream {
    const { stream } = answer;
    const known = this.#streams.find((tapped) => tapped === stream);
    if (known) return known;
    if (stream === undefined) throw new Error('there is no stream to tap');
    const { exchange } = this;
    const tapped = new TappedStream(stream, exchange, () => exchange.answer?.facts ?? answer.facts, this.#fault);
    this.#streams.push(tapped);
    answer.stream = tapped;
    return tapped;
  }
}

function toOutcome(answer: Answer): Outcome {
  const { error, facts } = answer;
  return {
    status: error === undefined ? 'complete' : isAbort(error) ? 'aborted' : 'failed',
    ...(error ? { error } : {}),
    ...(facts.finishReason ? { finishReason: facts.finishReason } : {}),
    ...(facts.usage ? { usage: facts.usage } : {}),
  };
}

import { HermesError, isAbort, toHermesError } from '../contracts/errors.ts';
import type { Answer, Exchange } from '../contracts/exchange.ts';
import type { Next } from '../contracts/plugin.ts';
import type { Outcome } from '../contracts/stream.ts';
import type { Log } from '../contracts/telemetry.ts';
import { ExchangeAnswer } from './answer.ts';
import { type Entry, type Layer, type LayerFault, runEnds } from './entry.ts';
import { TappedStream } from './tapped-stream.ts';

export type Terminal = (exchange: Exchange) => Promise<Answer>;
export type Pipeline = (exchange: Exchange) => Promise<Answer>;

const NOTHING: object = Object.freeze({});

/**
 * Composes layers into one onion around `terminal`. The result never rejects: a failure is an answer with `error`.
 * A scope is the root exchange or a fork; its `onEnd`s run inside out, once, before its reader learns of the end.
 */
export function compose(layers: readonly Layer[], terminal: Terminal, log: Log): Pipeline {
  const fault: LayerFault = (layer, thrown) => {
    if (thrown instanceof HermesError) return thrown;
    log.error({ plugin: layer.name, err: thrown, optional: layer.optional }, layer.optional ? 'plugin threw and was skipped' : 'plugin threw');
    return new HermesError('plugin_error', `The plugin "${layer.name}" failed on this request; the log has the details under this request id.`, {
      cause: thrown,
    });
  };
  const runScope = async (exchange: Exchange, from: number): Promise<Answer> => {
    const scope = new Scope(exchange, fault);
    await dispatch(scope, from);
    return scope.finish();
  };

  const dispatch = async (scope: Scope, index: number): Promise<Answer> => {
    const { exchange } = scope;
    const layer = layers[index];
    if (layer === undefined) return runTerminal(exchange, terminal);
    const entry: Entry = { layer, index, exchange, local: layer.local?.() ?? NOTHING, attached: false, ended: false };
    scope.entries.push(entry);
    const { handle } = layer.hooks;
    if (handle === undefined) {
      await dispatch(scope, index + 1);
    } else {
      const step = new Step(layer, exchange, fault, (fork) => (fork ? runScope(fork, index + 1) : dispatch(scope, index + 1)));
      await step.run(entry.local);
    }
    return scope.pass(entry);
  };

  return (exchange) => runScope(exchange, 0);
}

async function runTerminal(exchange: Exchange, terminal: Terminal): Promise<Answer> {
  try {
    const answer = await terminal(exchange);
    if (exchange.answer !== answer) exchange.answer = answer;
  } catch (thrown) {
    exchange.answer = { error: toHermesError(thrown) };
  }
  return settled(exchange);
}

function settled(exchange: Exchange): Answer {
  exchange.answer ??= { error: new HermesError('internal_error', 'No step answered this request.') };
  return exchange.answer as Answer;
}

/** One layer's `handle` on one exchange. */
class Step {
  readonly #layer: Layer;
  readonly #exchange: Exchange;
  readonly #fault: LayerFault;
  readonly #inner: (fork?: Exchange) => Promise<Answer>;
  #called = false;
  #start = 0;

  constructor(layer: Layer, exchange: Exchange, fault: LayerFault, inner: (fork?: Exchange) => Promise<Answer>) {
    this.#layer = layer;
    this.#exchange = exchange;
    this.#fault = fault;
    this.#inner = inner;
  }

  async run(local: object): Promise<void> {
    const exchange = this.#exchange;
    this.#start = performance.now();
    try {
      const result = await this.#layer.hooks.handle?.(exchange, this.#next as Next, local);
      if (result instanceof ExchangeAnswer && result !== exchange.answer) exchange.answer = result;
      if (exchange.answer === undefined) throw new Error(`the plugin "${this.#layer.name}" neither called next() nor set exchange.answer`);
    } catch (thrown) {
      await this.#recover(thrown);
    }
    if (!this.#called) this.#span();
  }

  readonly #next = (fork?: Exchange): Promise<Answer> => {
    if (fork !== undefined) {
      if (!this.#called) this.#span();
      this.#called = true;
      return this.#inner(fork);
    }
    if (this.#called) throw new Error(`next() was called twice by the plugin "${this.#layer.name}": a further try is a fork, next(exchange.fork())`);
    this.#called = true;
    this.#span();
    return this.#inner();
  };

  /** A layer's own time before it went on. */
  #span(): void {
    this.#exchange.trace.record(this.#layer.name, this.#start, performance.now());
  }

  async #recover(thrown: unknown): Promise<void> {
    const exchange = this.#exchange;
    const error = this.#fault(this.#layer, thrown);
    if (this.#layer.optional) {
      if (!this.#called) {
        this.#called = true;
        await this.#inner();
      }
      settled(exchange);
      return;
    }
    const before = exchange.answer as Answer | undefined;
    await before?.stream?.cancel(error);
    exchange.answer = { error, ...(before ? { facts: before.facts } : {}) };
  }
}

/** The root exchange, or a fork: its entered layers and their streams. */
class Scope {
  readonly exchange: Exchange;
  readonly entries: Entry[] = [];
  readonly #fault: LayerFault;
  readonly #streams: TappedStream[] = [];

  constructor(exchange: Exchange, fault: LayerFault) {
    this.exchange = exchange;
    this.#fault = fault;
  }

  /** A layer has unwound: its hooks go onto the stream that stands now; a whole body leaves them for `finish`. */
  pass(entry: Entry): Answer {
    const answer = settled(this.exchange);
    if (answer.stream && (entry.layer.hooks.onChunk || entry.layer.hooks.onEnd)) this.#tapped(answer).attach(entry);
    return answer;
  }

  async finish(): Promise<Answer> {
    const answer = settled(this.exchange);
    const pending = this.entries.filter((entry) => !entry.attached && entry.layer.hooks.onEnd !== undefined);
    if (answer.stream) {
      if (pending.length > 0) for (const entry of pending) this.#tapped(answer).attach(entry);
      return answer;
    }
    // A stream that a layer dropped for a whole body still has its ends to run.
    for (const stream of this.#streams) if (!stream.over) await stream.cancel(answer.error ?? new HermesError('superseded', 'Another answer took its place.'));
    if (pending.length === 0) return answer;
    const failed = await runEnds(pending, toOutcome(answer), this.#fault);
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

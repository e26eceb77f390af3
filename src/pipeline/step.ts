import { HermesError } from '../contracts/errors.ts';
import type { Answer, Exchange } from '../contracts/exchange.ts';
import type { Next } from '../contracts/plugin.ts';
import { cancelQuietly } from '../wire/streams.ts';
import { ExchangeAnswer } from './answer.ts';
import type { Entry, Layer, LayerFault } from './entry.ts';
import { type Scope, settled } from './scope.ts';

/** What a step needs of the onion that it stands in. */
export interface Onion {
  readonly fault: LayerFault;
  runScope(exchange: Exchange, from: number): Promise<Answer>;
  dispatch(scope: Scope, index: number): Promise<Answer>;
}

const NOTHING: object = Object.freeze({});

/** One layer's `handle` on one exchange. What every layer pays is kept small: one object, and one function to hand out. */
export class Step implements Entry {
  readonly layer: Layer;
  readonly index: number;
  readonly exchange: Exchange;
  local: object = NOTHING;
  attached = false;
  ended = false;
  readonly #onion: Onion;
  readonly #scope: Scope;
  readonly #start = performance.now();
  /** How many steps had been entered and not left, this one counted. */
  readonly #depth: number;
  #called = false;
  /** Its handle has ended. */
  #over = false;
  /** What the layer got from its one `next()`: when it gives just that back, there is nothing left to settle. */
  #inner: Promise<Answer> | undefined;

  constructor(onion: Onion, scope: Scope, layer: Layer, index: number) {
    this.#onion = onion;
    this.#scope = scope;
    this.layer = layer;
    this.index = index;
    this.exchange = scope.exchange;
    this.#depth = ++scope.inside;
  }

  /** Makes the state of this entry. False: it threw, and the answer is its error unless the layer is optional. */
  begin(local: () => object): boolean {
    try {
      this.local = local();
      return true;
    } catch (thrown) {
      const error = this.#onion.fault(this, thrown);
      if (!this.layer.optional) this.exchange.answer = { error };
      return false;
    }
  }

  /** Not entered: what stands inside goes on without it, or nothing does. */
  skipped(): Promise<Answer> {
    this.#scope.inside--;
    return this.layer.optional ? this.#onion.dispatch(this.#scope, this.index + 1) : Promise.resolve(settled(this.exchange));
  }

  run(): Promise<Answer> {
    const { layer, exchange, local } = this;
    try {
      const next = (fork?: Exchange): Promise<Answer> => this.#next(fork);
      const result = layer.hooks.handle?.(exchange, next as Next, local);
      // A layer that hands on what came, and looks at no stream: not a promise more for it.
      if (result !== undefined && result === this.#inner && !layer.hooks.onChunk && !layer.hooks.onEnd) {
        this.#scope.inside--;
        return this.#inner;
      }
      // Whatever a plugin awaits with: a thenable of another library is one, too.
      if (isThenable(result)) {
        const promise = result instanceof Promise ? result : Promise.resolve(result);
        return promise.then(
          (settled) => this.#settleOrRecover(settled),
          (thrown) => this.#recover(thrown),
        );
      }
      return Promise.resolve(this.#settle(result));
    } catch (thrown) {
      return this.#recover(thrown);
    }
  }

  #settleOrRecover(result: unknown): Answer | Promise<Answer> {
    try {
      return this.#settle(result);
    } catch (thrown) {
      return this.#recover(thrown);
    }
  }

  #settle(result: unknown): Answer | Promise<Answer> {
    if (this.#scope.inside > this.#depth) return this.#innerLeft().then(() => this.#left(result));
    return this.#left(result);
  }

  #left(result: unknown): Answer {
    const { layer, exchange } = this;
    if (result instanceof ExchangeAnswer && result !== exchange.answer) exchange.answer = result;
    if (exchange.answer === undefined) throw new Error(`the plugin "${layer.name}" neither called next() nor set exchange.answer`);
    if (!this.#called) this.#span();
    this.#over = true;
    return this.#scope.pass(this);
  }

  /** Did this layer end before what it called? Nothing inside may outlive it: a session would stay locked. An answer that it set itself stands. */
  async #innerLeft(): Promise<void> {
    const { exchange } = this;
    const own = exchange.answer;
    const inner = await this.#inner;
    if (own === undefined || own === inner) return;
    await cancelQuietly(inner?.stream, new HermesError('superseded', 'Another answer took its place.'));
    exchange.answer = own;
  }

  #next(fork: Exchange | undefined): Promise<Answer> {
    const { layer, index } = this;
    if (fork === undefined && this.#called) {
      throw new Error(`next() was called twice by the plugin "${layer.name}": a further try is a fork, next(exchange.fork())`);
    }
    if (fork === undefined && this.#over) {
      // Not thrown: in a timer of the plugin's nobody would catch it. What stood inside would begin after its end, and never have one.
      this.#onion.fault(this, new Error(`the plugin "${layer.name}" called next() after its handle had ended: return it, or await it`));
      return Promise.resolve(settled(this.exchange));
    }
    if (!this.#called) this.#span();
    this.#called = true;
    if (fork !== undefined) return this.#onion.runScope(fork, index + 1);
    this.#inner = this.#onion.dispatch(this.#scope, index + 1);
    return this.#inner;
  }

  /** A layer's own time before it went on. */
  #span(): void {
    this.exchange.trace.record(this.layer.name, this.#start, performance.now());
  }

  async #recover(thrown: unknown): Promise<Answer> {
    const { layer, exchange, index } = this;
    const error = this.#onion.fault(this, thrown);
    if (this.#scope.inside > this.#depth) await this.#innerLeft();
    if (layer.optional) {
      if (!this.#called) {
        this.#called = true;
        await this.#onion.dispatch(this.#scope, index + 1);
      }
      settled(exchange);
    } else {
      const before = exchange.answer as Answer | undefined;
      await cancelQuietly(before?.stream, error);
      exchange.answer = { error, ...(before ? { facts: before.facts } : {}) };
    }
    this.#over = true;
    return this.#scope.pass(this);
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

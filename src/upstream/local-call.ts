import { HermesError } from '../contracts/errors.ts';
import type { Provider, UpstreamCall } from '../contracts/provider.ts';
import { isFailure } from './failure.ts';
import type { OpenCall, UpstreamHead } from './open-call.ts';
import { Waiting } from './waiting.ts';

/** A call of a provider that answers in this process (the simulator): the same promises as one over the network. */
export class LocalCall implements OpenCall {
  readonly #controller = new AbortController();
  readonly #answer: AsyncIterator<Uint8Array>;
  readonly #stream: boolean;
  readonly #waiting = new Waiting(() => this.abort(new HermesError('upstream_timeout', 'The model did not answer in time; try again later.')));
  #first: Buffer | undefined;
  #piece: Buffer | null | undefined;
  #error: HermesError | undefined;
  #failure: UpstreamHead['failure'];
  #asking = false;

  constructor(answer: NonNullable<Provider['answer']>, call: UpstreamCall) {
    this.#answer = answer(call, this.#controller.signal)[Symbol.asyncIterator]();
    this.#stream = call.stream;
  }

  async head(until: number): Promise<UpstreamHead> {
    const first = await this.read(until).catch((error: HermesError) => {
      if (this.#failure === undefined) throw error;
      return null;
    });
    if (this.#failure) return { status: this.#failure.status, headers: {}, failure: this.#failure };
    this.#first = first ?? undefined;
    return { status: 200, headers: { 'content-type': this.#stream ? 'text/event-stream' : 'application/json' } };
  }

  async read(until: number): Promise<Buffer | null> {
    const first = this.#first;
    this.#first = undefined;
    if (this.#error) throw this.#error;
    if (first) return first;
    if (this.#piece === undefined) {
      this.#ask();
      await this.#waiting.for(until);
    }
    if (this.#error) throw this.#error;
    const piece = this.#piece ?? null;
    if (piece !== null) this.#piece = undefined;
    return piece;
  }

  release(): void {
    this.#controller.abort();
    this.#waiting.stop();
  }

  abort(reason: HermesError): void {
    if (this.#error) return;
    this.#error = reason;
    this.release();
  }

  #ask(): void {
    if (this.#asking) return;
    this.#asking = true;
    this.#answer.next().then(
      ({ done, value }) => this.#take(done ? null : Buffer.from(value.buffer, value.byteOffset, value.byteLength)),
      (thrown: unknown) => {
        if (typeof thrown === 'object' && thrown !== null && isFailure(thrown)) this.#failure = thrown;
        this.#error ??= new HermesError('upstream_error', 'The model failed inside hermes.', { cause: thrown });
        this.#take(null);
      },
    );
  }

  #take(piece: Buffer | null): void {
    this.#asking = false;
    this.#piece = piece;
    if (piece === null) this.#waiting.stop();
    else this.#waiting.announce();
  }
}

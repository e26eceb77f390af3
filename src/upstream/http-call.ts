import type { Duplex } from 'node:stream';
import type { Dispatcher } from 'undici';
import { HermesError } from '../contracts/errors.ts';
import { createDecoder } from './decoder.ts';
import type { OpenCall, UpstreamHead } from './open-call.ts';
import { Waiting } from './waiting.ts';

/** Beyond this much unread the socket is paused. */
const MAX_QUEUED_BYTES = 65_536;

/** One HTTP call as undici's handler: pushed at by the socket, pulled by the reader. */
export class HttpCall implements OpenCall, Dispatcher.DispatchHandler {
  #controller: Dispatcher.DispatchController | undefined;
  #decoder: Duplex | undefined;
  #head: UpstreamHead | undefined;
  #queue: Buffer[] = [];
  #queued = 0;
  #paused = false;
  #released = false;
  #ended = false;
  #error: HermesError | undefined;
  #grace: NodeJS.Timeout | undefined;
  readonly #waiting = new Waiting(() => this.abort(this.#lateError()));

  head(until: number): Promise<UpstreamHead> {
    return this.#head === undefined && this.#error === undefined ? this.#waiting.for(until).then(this.#headOrThrow) : Promise.resolve().then(this.#headOrThrow);
  }

  readonly #headOrThrow = (): UpstreamHead => {
    // A connection that broke after the head: the status still counts, reading tells the rest.
    if (this.#head === undefined) throw this.#error ?? brokenOff();
    return this.#head;
  };

  read(until: number): Buffer | null | Promise<Buffer | null> {
    if (this.#queued > 0) return this.#take();
    if (this.#error) throw this.#error;
    if (this.#ended) return null;
    // What is taken after the wait is all that one read of the socket brought, however many chunks that were.
    return this.#waiting.for(until).then(() => this.read(until));
  }

  release(graceMs: number): void {
    if (this.#ended || this.#error) return;
    this.#released = true;
    this.#queue = [];
    this.#queued = 0;
    this.#grace = setTimeout(() => this.abort(brokenOff()), graceMs);
    this.#grace.unref();
    this.#resume();
  }

  abort(reason: HermesError): void {
    if (this.#ended || this.#error) return;
    this.#queue = [];
    this.#queued = 0;
    this.#fail(reason);
    this.#controller?.abort(new Error('aborted'));
    this.#decoder?.destroy();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#error) controller.abort(new Error('aborted'));
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, incoming: Record<string, string | string[] | undefined>): void {
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(incoming))
      if (value !== undefined) headers[name.toLowerCase()] = Array.isArray(value) ? value.join(', ') : value;
    const decoder = createDecoder(headers['content-encoding']);
    if (decoder) this.#decode(decoder);
    this.#head = { status, headers };
    this.#waiting.announce();
  }

  onResponseData(controller: Dispatcher.DispatchController, piece: Buffer): void {
    if (this.#decoder === undefined) this.#push(piece);
    else if (!this.#decoder.write(piece)) controller.pause();
  }

  onResponseEnd(): void {
    if (this.#decoder) this.#decoder.end();
    else this.#end();
  }

  onResponseError(_controller: Dispatcher.DispatchController, thrown: Error): void {
    if (this.#ended) return;
    this.#fail(toTransportError(thrown, this.#head !== undefined));
    this.#decoder?.destroy();
  }

  #decode(decoder: Duplex): void {
    this.#decoder = decoder;
    decoder.on('data', (piece: Buffer) => this.#push(piece));
    decoder.on('drain', () => this.#controller?.resume());
    decoder.on('end', () => this.#end());
    decoder.on('error', () => this.abort(new HermesError('upstream_error', 'The answer of the model could not be decompressed.')));
  }

  #push(piece: Buffer): void {
    if (this.#released || piece.length === 0) return;
    this.#queue.push(piece);
    this.#queued += piece.length;
    if (this.#queued > MAX_QUEUED_BYTES && !this.#paused) {
      this.#paused = true;
      (this.#decoder ?? this.#controller)?.pause();
    }
    this.#waiting.announce();
  }

  #take(): Buffer {
    const [first] = this.#queue;
    const piece = this.#queue.length === 1 && first ? first : Buffer.concat(this.#queue);
    this.#queue = [];
    this.#queued = 0;
    // Last: undici's resume() calls onResponseData again before it returns.
    this.#resume();
    return piece;
  }

  #resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    (this.#decoder ?? this.#controller)?.resume();
  }

  #end(): void {
    this.#ended = true;
    clearTimeout(this.#grace);
    this.#waiting.stop();
  }

  #fail(error: HermesError): void {
    this.#error ??= error;
    clearTimeout(this.#grace);
    this.#waiting.stop();
  }

  #lateError(): HermesError {
    const what = this.#head === undefined ? 'did not answer in time' : 'stopped answering in time';
    return new HermesError('upstream_timeout', `The model ${what}; try again later, or give it more time in its configuration.`);
  }
}

function brokenOff(): HermesError {
  return new HermesError('upstream_error', 'The connection to the model was closed before its answer was whole; try again.');
}

/** Node's own messages name the address: the cause keeps the code alone. */
function toTransportError(thrown: Error, begun: boolean): HermesError {
  const code = 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : thrown.name;
  const cause = new Error(`transport: ${code}`);
  if (code === 'UND_ERR_CONNECT_TIMEOUT')
    return new HermesError('upstream_timeout', 'No connection to the model could be made in time; try again later.', { cause });
  if (begun) return new HermesError('upstream_error', 'The connection to the model was closed before its answer was whole; try again.', { cause });
  return new HermesError('upstream_error', 'The model could not be reached; try again later.', { cause });
}

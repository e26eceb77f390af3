import type { HermesError } from '../contracts/errors.ts';
import type { Answer, AnswerInit, Facts } from '../contracts/exchange.ts';
import type { ChunkStream, Form } from '../contracts/stream.ts';
import { parseJsonBytes } from '../wire/json.ts';

/** A whole body as it came from an upstream, with its canonical view made on demand. */
export interface RawBody {
  bytes: Uint8Array;
  form: Form;
  /** Its canonical form; defaults to the bytes parsed as JSON. */
  parse?: () => unknown;
}

/** An answer whose body is parsed when looked at, and whose bytes are relayed as long as nobody changed it. */
export class ExchangeAnswer implements Answer {
  status: number;
  headers: Record<string, string>;
  stream: ChunkStream | undefined;
  error: HermesError | undefined;
  holdFinish: boolean;
  facts: Facts;
  #raw: RawBody | undefined;
  #body: unknown;
  #parsed = false;
  /** Serialisation at hand-out: what a change is told by. */
  #handedOut: string | undefined;

  constructor(init: AnswerInit, raw?: RawBody) {
    this.status = init.status ?? init.error?.status ?? 200;
    this.headers = init.headers ?? {};
    this.stream = init.stream;
    this.error = init.error;
    this.holdFinish = init.holdFinish ?? false;
    this.facts = init.facts ?? {};
    this.#raw = raw;
    this.#body = init.body;
    this.#parsed = raw === undefined;
  }

  get view(): unknown {
    if (!this.#parsed && this.#raw) {
      this.#body = this.#raw.parse ? this.#raw.parse() : parseJsonBytes(this.#raw.bytes);
      this.#parsed = true;
    }
    return this.#body;
  }

  get body(): unknown {
    const view = this.view;
    if (this.#raw) this.#handedOut ??= JSON.stringify(view);
    return view;
  }
  set body(value: unknown) {
    this.#body = value;
    this.#parsed = true;
    this.#raw = undefined;
    this.stream = undefined;
  }

  get raw(): RawBody | undefined {
    if (this.#raw && this.#handedOut !== undefined && JSON.stringify(this.#body) !== this.#handedOut) this.#raw = undefined;
    return this.#raw;
  }
}

/** A whole answer that relays these bytes unless somebody changes its body. */
export function rawAnswer(init: AnswerInit, raw: RawBody): Answer {
  return new ExchangeAnswer(init, raw);
}

export function toAnswer(value: Answer | AnswerInit): Answer {
  return value instanceof ExchangeAnswer ? value : new ExchangeAnswer(value);
}

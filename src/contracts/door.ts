import type { ChatCompletion, ChatRequest } from '../wire/chat.ts';
import type { HermesError } from './errors.ts';
import type { Answer, Ask, Exchange, Facts } from './exchange.ts';
import type { Form, Writer } from './stream.ts';

/** What a door made of a request. */
export interface Entered {
  request: ChatRequest;
  ask: Ask;
  stream: boolean;
  usage: boolean;
  /** An extension field was used. */
  extended: boolean;
}
/** What an answer may need to know of its request. */
export type Asked = Pick<Exchange, 'id' | 'ask' | 'inbound'>;
/** A pure translator between what a client speaks and the canonical form. */
export interface Door {
  form: Form;
  /** Throws a HermesError that names the field. `headers`: the caller's, lower case. `freshId`: for forms that name their answers so that they can be gone on with. */
  enter(body: unknown, headers: Readonly<Record<string, string>>, freshId?: () => string): Entered;
  /** A whole answer in the client's form. */
  toBody(completion: ChatCompletion, facts: Facts, asked?: Asked): unknown;
  createWriter(asked?: Asked): Writer;
  toError(error: HermesError, facts: Facts): unknown;
  /** More response headers in the client's dialect. */
  toHeaders?(answer: Answer): Record<string, string>;
}
export function defineDoor(door: Door): Door {
  return door;
}

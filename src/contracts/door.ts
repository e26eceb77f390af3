import type { ChatCompletion, ChatMessage, ChatRequest } from '../wire/chat.ts';
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
/** For forms whose answers are objects that stay and are asked for again by their id. */
export interface KeptForm {
  /** The answer as it is given again. */
  keep(completion: ChatCompletion, facts: Facts, asked: Asked): { id: string; view: unknown };
  /** The session that an id leads to; undefined: no such answer is kept. */
  sessionOf(id: string): string | undefined;
  /** What was new in the request that led to it, in the client's form. */
  toItems(id: string, messages: readonly ChatMessage[]): Record<string, unknown>[];
  /** Items of earlier answers that messages of a request stand for (`ask.refers`), each with the answer that it belongs to; undefined: none that can be kept. */
  references(messages: readonly ChatMessage[]): { item: string; answer: string | undefined }[];
  /** The items of an answer as it is given again, by their ids. */
  itemsOf(view: unknown): ReadonlyMap<string, unknown>;
  /** The messages with those items in the place of what stood for them. */
  resolve(messages: readonly ChatMessage[], items: ReadonlyMap<string, unknown>): ChatMessage[];
}
/** A pure translator between what a client speaks and the canonical form. */
export interface Door {
  form: Form;
  /** Throws a HermesError that names the field. `headers`: the caller's, lower case. `freshId`: for forms that name their answers so that they can be gone on with. */
  enter(body: unknown, headers: Readonly<Record<string, string>>, freshId?: () => string): Entered;
  /** A whole answer in the client's form. */
  toBody(completion: ChatCompletion, facts: Facts, asked?: Asked): unknown;
  createWriter(asked?: Asked, facts?: Facts): Writer;
  kept?: KeptForm;
  toError(error: HermesError, facts: Facts): unknown;
  /** More response headers in the client's dialect. */
  toHeaders?(answer: Answer): Record<string, string>;
}
export function defineDoor(door: Door): Door {
  return door;
}

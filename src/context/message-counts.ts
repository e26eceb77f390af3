import type { ChatMessage } from '../wire/chat.ts';
import { keptOf, keptTokens } from '../wire/recalled.ts';
import type { Counter } from './counter.ts';
import { type Encoding, type Scale, scaled } from './encoding.ts';
import { sizeOfMessage, upperBound } from './message-size.ts';

/** What has been counted of one message, as long as its content is the same: a plugin may change a message in place. */
interface Counts {
  content: unknown;
  calls: unknown;
  tokens: Partial<Record<Encoding, number | Promise<number>>>;
}

/** The encoding that stored counts are in, whichever model answered: those of other vendors' models follow by their ratio. */
const STORED: Encoding = 'o200k_base';

/** Counts each message of a request once an encoding, however many tries it takes; a recalled one was counted when it was stored. */
export class MessageCounts {
  readonly #counter: Counter;
  readonly #counted = new WeakMap<ChatMessage, Counts>();

  constructor(counter: Counter) {
    this.#counter = counter;
  }

  /** The exact count where it is known. */
  known(message: ChatMessage, scale: Scale): number | undefined {
    const stored = scale.encoding === STORED ? keptTokens(message) : undefined;
    const tokens = stored ?? this.#find(keptOf(message)?.message ?? message)?.tokens[scale.encoding];
    return typeof tokens === 'number' ? scaled(tokens, scale) : undefined;
  }

  /** An upper bound. Counts nothing. */
  atMost(message: ChatMessage, scale: Scale): number {
    return scaled(upperBound(sizeOfMessage(message)), scale);
  }

  /** The exact count where it is known, else a guess. Counts nothing. */
  roughly(message: ChatMessage, scale: Scale): number {
    return this.known(message, scale) ?? scaled(Math.ceil(upperBound(sizeOfMessage(message)) / 4), scale);
  }

  exactly(message: ChatMessage, scale: Scale): number | Promise<number> {
    const ready = this.known(message, scale);
    if (ready !== undefined) return ready;
    const own = keptOf(message)?.message ?? message;
    const counts = this.#find(own) ?? this.#note(own);
    const counting = counts.tokens[scale.encoding] ?? this.#countInto(counts, own, scale.encoding);
    return Promise.resolve(counting).then((tokens) => scaled(tokens, scale));
  }

  #countInto({ tokens }: Counts, message: ChatMessage, encoding: Encoding): Promise<number> {
    const counting = this.#count(message, encoding).then((count) => {
      tokens[encoding] = count;
      return count;
    });
    tokens[encoding] = counting;
    return counting;
  }

  /** Notes nothing: the store keeps the count. */
  countStored(message: ChatMessage): Promise<number> {
    return this.#count(message, STORED);
  }

  /** Throws at once where there is no sense in the message. */
  #count(message: ChatMessage, encoding: Encoding): Promise<number> {
    const { texts, fixed } = sizeOfMessage(message);
    return this.#counter.count(encoding, texts).then((tokens) => tokens + fixed);
  }

  #find(message: ChatMessage): Counts | undefined {
    const counts = this.#counted.get(message);
    return counts?.content === message.content && counts?.calls === message.tool_calls ? counts : undefined;
  }

  #note(message: ChatMessage): Counts {
    const counts: Counts = { content: message.content, calls: message.tool_calls, tokens: {} };
    this.#counted.set(message, counts);
    return counts;
  }
}

import type { ChatMessage } from '../wire/chat.ts';
import { keptOf } from '../wire/recalled.ts';
import type { Counter } from './counter.ts';
import { type Encoding, type Scale, scaled } from './encoding.ts';
import { sizeOfMessage, upperBound } from './message-size.ts';

/** What is known of one message, as long as its content is the same: a plugin may change a message in place. */
interface Known {
  content: unknown;
  calls: unknown;
  /** An upper bound, made on demand. */
  bound: number | undefined;
  counts: Partial<Record<Encoding, number | Promise<number>>>;
}

/** The encoding that stored counts are in, whichever model answered: those of other vendors' models follow by their ratio. */
const STORED: Encoding = 'o200k_base';

/** Counts each message once an encoding; a recalled one was counted when it was stored. */
export class MessageCounts {
  readonly #counter: Counter;
  readonly #known = new WeakMap<ChatMessage, Known>();

  constructor(counter: Counter) {
    this.#counter = counter;
  }

  /** The exact count where it is known. */
  known(message: ChatMessage, scale: Scale): number | undefined {
    const kept = keptOf(message);
    const count = kept && scale.encoding === STORED ? kept.tokens : this.#of(kept?.message ?? message).counts[scale.encoding];
    return typeof count === 'number' ? scaled(count, scale) : undefined;
  }

  /** An upper bound. Counts nothing. */
  atMost(message: ChatMessage, scale: Scale): number {
    return scaled(this.#bound(message), scale);
  }

  /** The exact count where it is known, else a guess. Counts nothing. */
  roughly(message: ChatMessage, scale: Scale): number {
    return this.known(message, scale) ?? scaled(Math.ceil(this.#bound(message) / 4), scale);
  }

  exactly(message: ChatMessage, scale: Scale): number | Promise<number> {
    const ready = this.known(message, scale);
    if (ready !== undefined) return ready;
    const own = keptOf(message)?.message ?? message;
    const known = this.#of(own);
    const counting = known.counts[scale.encoding] ?? this.#count(own, known, scale.encoding);
    return Promise.resolve(counting).then((tokens) => scaled(tokens, scale));
  }

  #count(message: ChatMessage, known: Known, encoding: Encoding): Promise<number> {
    const { texts, fixed } = sizeOfMessage(message);
    const counting = this.#counter.count(encoding, texts).then((tokens) => {
      known.counts[encoding] = tokens + fixed;
      return tokens + fixed;
    });
    known.counts[encoding] = counting;
    return counting;
  }

  #bound(message: ChatMessage): number {
    const known = this.#of(keptOf(message)?.message ?? message);
    known.bound ??= upperBound(sizeOfMessage(message));
    return known.bound;
  }

  #of(message: ChatMessage): Known {
    let known = this.#known.get(message);
    if (known === undefined || known.content !== message.content || known.calls !== message.tool_calls) {
      known = { content: message.content, calls: message.tool_calls, bound: undefined, counts: {} };
      this.#known.set(message, known);
    }
    return known;
  }
}

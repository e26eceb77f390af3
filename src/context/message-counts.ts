import type { ChatMessage } from '../wire/chat.ts';
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
export const STORED: Encoding = 'o200k_base';

/** Counts each message once an encoding. */
export class MessageCounts {
  readonly #counter: Counter;
  readonly #known = new WeakMap<ChatMessage, Known>();

  constructor(counter: Counter) {
    this.#counter = counter;
  }

  remember(message: ChatMessage, tokens: number): void {
    this.#of(message).counts[STORED] = tokens;
  }

  /** The exact count where it is known, else an upper bound. Counts nothing. */
  atMost(message: ChatMessage, scale: Scale): number {
    const known = this.#of(message);
    const count = known.counts[scale.encoding];
    return scaled(typeof count === 'number' ? count : boundOf(message, known), scale);
  }

  /** The exact count where it is known, else a guess. Counts nothing. */
  roughly(message: ChatMessage, scale: Scale): number {
    const known = this.#of(message);
    const count = known.counts[scale.encoding];
    return scaled(typeof count === 'number' ? count : Math.ceil(boundOf(message, known) / 4), scale);
  }

  exactly(message: ChatMessage, scale: Scale): number | Promise<number> {
    const known = this.#of(message);
    const { encoding } = scale;
    const count = known.counts[encoding];
    if (typeof count === 'number') return scaled(count, scale);
    return (count ?? this.#count(message, known, encoding)).then((tokens) => scaled(tokens, scale));
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

  #of(message: ChatMessage): Known {
    let known = this.#known.get(message);
    if (known === undefined || known.content !== message.content || known.calls !== message.tool_calls) {
      known = { content: message.content, calls: message.tool_calls, bound: undefined, counts: {} };
      this.#known.set(message, known);
    }
    return known;
  }
}

function boundOf(message: ChatMessage, known: Known): number {
  known.bound ??= upperBound(sizeOfMessage(message));
  return known.bound;
}

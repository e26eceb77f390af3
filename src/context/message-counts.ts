import type { StoredMessage } from '../contracts/cold-store.ts';
import type { SessionTurn } from '../contracts/exchange.ts';
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
/** A turn's history: each copy with the stored message that it is of. */
export type Recalled = ReadonlyMap<ChatMessage, StoredMessage>;

/** The encoding that stored counts are in, whichever model answered: those of other vendors' models follow by their ratio. */
const STORED: Encoding = 'o200k_base';

/**
 * Counts each message once an encoding. A recalled message is known by what it is a copy of: one entry a turn, for an entry a
 * message in a weak map costs more than the whole rest of a recall (3 µs each).
 */
export class MessageCounts {
  readonly #counter: Counter;
  readonly #known = new WeakMap<ChatMessage, Known>();
  readonly #turns = new WeakMap<SessionTurn, () => Recalled>();

  constructor(counter: Counter) {
    this.#counter = counter;
  }

  remember(turn: SessionTurn, copies: readonly ChatMessage[], stored: readonly StoredMessage[]): void {
    let made: Recalled | undefined;
    this.#turns.set(turn, () => {
      made ??= new Map(copies.flatMap((copy, index) => (stored[index] ? [[copy, stored[index]] as const] : [])));
      return made;
    });
  }

  recalled(turn: SessionTurn | undefined): Recalled | undefined {
    return turn && this.#turns.get(turn)?.();
  }

  /** The exact count where it is known, else an upper bound. Counts nothing. */
  atMost(message: ChatMessage, scale: Scale, recalled?: Recalled): number {
    return scaled(this.#ready(message, scale, recalled) ?? this.#bound(message), scale);
  }

  /** The exact count where it is known, else a guess. Counts nothing. */
  roughly(message: ChatMessage, scale: Scale, recalled?: Recalled): number {
    return scaled(this.#ready(message, scale, recalled) ?? Math.ceil(this.#bound(message) / 4), scale);
  }

  exactly(message: ChatMessage, scale: Scale, recalled?: Recalled): number | Promise<number> {
    const ready = this.#ready(message, scale, recalled);
    if (ready !== undefined) return scaled(ready, scale);
    const own = originOf(message, recalled)?.message ?? message;
    const known = this.#of(own);
    const counting = known.counts[scale.encoding] ?? this.#count(own, known, scale.encoding);
    return Promise.resolve(counting).then((tokens) => scaled(tokens, scale));
  }

  #ready(message: ChatMessage, { encoding }: Scale, recalled: Recalled | undefined): number | undefined {
    const origin = originOf(message, recalled);
    if (origin && encoding === STORED) return origin.tokens;
    const count = this.#of(origin?.message ?? message).counts[encoding];
    return typeof count === 'number' ? count : undefined;
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
    const known = this.#of(message);
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

/** Undefined when it was changed since it was copied. */
function originOf(message: ChatMessage, recalled: Recalled | undefined): StoredMessage | undefined {
  const origin = recalled?.get(message);
  if (origin === undefined) return undefined;
  const { content } = origin.message;
  const same = Array.isArray(content) ? Array.isArray(message.content) && message.content.length === content.length : message.content === content;
  return same ? origin : undefined;
}

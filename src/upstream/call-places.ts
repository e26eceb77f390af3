import type { ToolCallDelta } from '../wire/chat.ts';

interface StreamedCall {
  /** As the upstream counts it; not all do. */
  index: number | undefined;
  id: string | undefined;
  /** Did any of its arguments come? */
  came: boolean;
}

/** How far calls were noted: what comes by once more is noted from there. */
export interface CallMark {
  count: number;
  current: ReadonlyMap<number | undefined, number>;
}
const NONE: CallMark = { count: 0, current: new Map() };

/**
 * Which call a streamed piece belongs to. Calls are counted from 0 in the order in which they came: some upstreams begin
 * elsewhere, some give every parallel call the index 0, some give none.
 */
export class CallPlaces {
  readonly #calls: StreamedCall[] = [];
  /** By the upstream's index: the call that its next piece goes on with. */
  readonly #current = new Map<number | undefined, number>();

  get size(): number {
    return this.#calls.length;
  }
  get allCame(): boolean {
    return this.#calls.every(({ came }) => came);
  }

  /** Gives the place of the call. */
  note(piece: ToolCallDelta): number {
    const { id } = piece;
    const index = Number.isInteger(piece.index) ? piece.index : undefined;
    const place = this.#find(index, piece) ?? this.#calls.push({ index, id: undefined, came: false }) - 1;
    this.#current.set(index, place);
    const call = this.#calls[place];
    if (call === undefined) return place;
    call.id ||= id;
    call.came ||= Boolean(piece.function?.arguments);
    return place;
  }

  /** Places of calls whose arguments never came; from now on they have. */
  takeBare(): number[] {
    const bare = [...this.#calls.keys()].filter((place) => !this.#calls[place]?.came);
    for (const call of this.#calls) call.came = true;
    return bare;
  }

  mark(): CallMark {
    return this.#calls.length === 0 ? NONE : { count: this.#calls.length, current: new Map(this.#current) };
  }
  rewind({ count, current }: CallMark = NONE): void {
    this.#calls.length = count;
    this.#current.clear();
    for (const [index, place] of current) this.#current.set(index, place);
  }

  #find(index: number | undefined, { id, function: called }: ToolCallDelta): number | undefined {
    const known = id ? this.#calls.findIndex((call) => call.index === index && call.id === id) : -1;
    if (known >= 0) return known;
    const current = index === undefined ? this.#calls.length - 1 : this.#current.get(index);
    const call = current === undefined ? undefined : this.#calls[current];
    if (call === undefined) return undefined;
    // A name begins a call. Without one it goes on, whatever its id is: some make up a new one for every piece.
    if (!called?.name) return current;
    return index === undefined || (id && call.id) ? undefined : current;
  }
}

import type { KeptTrace } from './kept-trace.ts';

/**
 * The newest traces, for views. A ring rather than a cache: nothing is looked up but by who looks, and at thousands of requests a
 * second what each of them leaves behind is what the garbage collector has to carry.
 */
export class TraceRing {
  readonly #places: (KeptTrace | undefined)[];
  readonly #sizeOf: (kept: KeptTrace) => number;
  readonly #mostContent: number;
  #next = 0;
  #content = 0;

  /** At most `places` traces and `mostContent` characters of captured content, as `sizeOf` counts them; the oldest go first. */
  constructor(places: number, mostContent: number, sizeOf: (kept: KeptTrace) => number) {
    this.#places = new Array<KeptTrace | undefined>(places).fill(undefined);
    this.#mostContent = mostContent;
    this.#sizeOf = sizeOf;
  }

  add(kept: KeptTrace): void {
    const at = this.#next;
    this.#next = (at + 1) % this.#places.length;
    this.#leave(at);
    const size = this.#sizeOf(kept);
    this.#content += size;
    for (let oldest = this.#next; this.#content > this.#mostContent && this.#content > size; oldest = (oldest + 1) % this.#places.length) this.#leave(oldest);
    if (size <= this.#mostContent) this.#places[at] = kept;
    else this.#content -= size;
  }

  get(id: string): KeptTrace | undefined {
    return this.#places.find((kept) => kept?.id === id);
  }

  *values(): Generator<KeptTrace> {
    for (const kept of this.#places) if (kept !== undefined) yield kept;
  }

  #leave(at: number): void {
    const kept = this.#places[at];
    if (kept === undefined) return;
    this.#content -= this.#sizeOf(kept);
    this.#places[at] = undefined;
  }
}

/** Sessions remembered at most; the ones longest unseen are forgotten. */
const MOST = 50_000;

/** Where each session's prompt cache is: the upstream that served it last. */
export class Places {
  readonly #places = new Map<string, string>();
  readonly #most: number;

  constructor(most: number = MOST) {
    this.#most = most;
  }

  /** The identity of the upstream. */
  get(session: string): string | undefined {
    return this.#places.get(session);
  }

  set(session: string, identity: string): void {
    // Deleted first: a Map is in order of insertion, and the oldest goes.
    this.#places.delete(session);
    this.#places.set(session, identity);
    if (this.#places.size > this.#most) for (const oldest of this.#places.keys()) return void this.#places.delete(oldest);
  }
}

/** No id holds a control character, so that nobody can forge another's key. */
export function placeKey(model: string, project: string, session: string): string {
  return `${model}\n${project}\n${session}`;
}

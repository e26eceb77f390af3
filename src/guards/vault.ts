/** As it stands in a text; in JSON a model may have written the brackets as escapes. */
const PLACEHOLDER = /(?:⟦|\\u27e6)([a-z_]+_\d+)(?:⟧|\\u27e7)/gi;
/** Longer than any placeholder in any spelling. */
const LONGEST = 48;

/** What was taken out of one request, and the placeholders that stand for it: `⟦card_1⟧`. The same value has the same one throughout. */
export class Vault {
  readonly #names = new Map<string, string>();
  readonly #values = new Map<string, string>();
  readonly #counts = new Map<string, number>();
  /** Names that the caller itself wrote: they stand for nothing. */
  readonly #taken: Set<string>;

  constructor(taken: Iterable<string> = []) {
    this.#taken = new Set(taken);
  }

  get empty(): boolean {
    return this.#values.size === 0;
  }

  /** Comes back in the answer. */
  keep(kind: string, value: string): string {
    const name = this.#nameOf(kind, value);
    this.#values.set(name, value);
    return `⟦${name}⟧`;
  }
  /** Stays. */
  mask(kind: string, value: string): string {
    const name = this.#nameOf(kind, value);
    // A name that comes back is no mask.
    return `⟦${this.#values.has(name) ? this.#fresh(kind) : name}⟧`;
  }

  /** One that gives nothing back. */
  get masking(): Vault {
    return new Vault([...this.#taken, ...this.#values.keys()]);
  }

  /** Placeholders of kept values in this text. */
  find(text: string): { start: number; end: number; value: string }[] {
    if (this.empty) return [];
    return [...text.matchAll(PLACEHOLDER)].flatMap(({ index, 0: whole, 1: name = '' }) => {
      const value = this.#values.get(name.toLowerCase());
      return value === undefined ? [] : [{ start: index, end: index + whole.length, value }];
    });
  }

  /** From here on the text may become a placeholder. */
  open(text: string): number {
    if (this.empty) return text.length;
    const tail = text.slice(-LONGEST);
    const at = Math.max(tail.lastIndexOf('⟦'), tail.toLowerCase().lastIndexOf('\\u27e6'));
    if (at >= 0 && !/⟧|\\u27e7/i.test(tail.slice(at))) return text.length - tail.length + at;
    const begun = /\\(?:u(?:2(?:7(?:e)?)?)?)?$/i.exec(tail);
    return begun ? text.length - begun[0].length : text.length;
  }

  #nameOf(kind: string, value: string): string {
    const key = JSON.stringify([kind, value]);
    const name = this.#names.get(key) ?? this.#fresh(kind);
    this.#names.set(key, name);
    return name;
  }

  #fresh(kind: string): string {
    let count = this.#counts.get(kind) ?? 0;
    let name: string;
    do name = `${kind}_${++count}`;
    while (this.#taken.has(name));
    this.#counts.set(kind, count);
    return name;
  }
}

/** Names of placeholders that stand in a text already. */
export function placeholdersIn(text: string): string[] {
  return [...text.matchAll(PLACEHOLDER)].map(([, name = '']) => name.toLowerCase());
}

/** Entries of the table of shallow states at most: 4 MB. */
const MOST_DENSE = 2 ** 20;

/**
 * A flat Aho-Corasick trie over UTF-16 units. Shallow states, where a text nearly always is, have a row each in one table that
 * names the next state for every character class, failing already followed. The edges of deeper ones live in an open-addressed
 * hash table of typed arrays: rows for all would be gigabytes for thousands of Chinese keywords, a Map per state double the garbage.
 */
export class Trie {
  /** By state: the keyword that ends here, or -1. */
  readonly outputs: Int32Array;
  /** By state: the longest proper suffix at which a keyword ends, or 0. */
  readonly outputLinks: Int32Array;
  /** By state: the longest suffix, itself included, at which a keyword ends, or 0. */
  readonly firstOutputs: Int32Array;
  readonly #fail: Int32Array;
  /** Character to class; 0 for one that no keyword contains. */
  readonly #classes: Uint16Array;
  /** Classes, and the one that stands for all other characters. */
  readonly #width: number;
  /** States below this have a row in `#rows`; they are numbered level by level. */
  readonly #shallow: number;
  readonly #rows: Int32Array;
  readonly #mask: number;
  readonly #states: Int32Array;
  readonly #symbols: Uint16Array;
  readonly #targets: Int32Array;

  /** `edges`: shorter prefixes first. `outputs`: by state. */
  constructor(edges: readonly Edge[], outputs: Int32Array) {
    this.outputs = outputs;
    this.#classes = new Uint16Array(0x10000);
    let classes = 0;
    for (const { unit } of edges) if (this.#classes[unit] === 0) this.#classes[unit] = ++classes;
    this.#width = classes + 1;
    this.#shallow = Math.max(1, Math.min(outputs.length, Math.floor(MOST_DENSE / this.#width)));
    this.#rows = new Int32Array(this.#shallow * this.#width);
    let capacity = 16;
    while (capacity < edges.length * 2) capacity *= 2;
    this.#mask = capacity - 1;
    this.#states = new Int32Array(capacity).fill(-1);
    this.#symbols = new Uint16Array(capacity);
    this.#targets = new Int32Array(capacity);
    for (const { from, unit, to } of edges) this.#insert(from, this.#classes[unit] ?? 0, to);
    this.#fail = new Int32Array(outputs.length);
    this.outputLinks = new Int32Array(outputs.length);
    this.firstOutputs = new Int32Array(outputs.length);
    for (const edge of edges) this.#link(edge);
    for (let state = 0; state < outputs.length; state++) this.firstOutputs[state] = outputs[state] === -1 ? (this.outputLinks[state] ?? 0) : state;
  }

  step(from: number, unit: number): number {
    const symbol = this.#classes[unit] ?? 0;
    if (symbol === 0) return 0;
    let state = from;
    while (state >= this.#shallow) {
      const next = this.#lookup(state, symbol);
      if (next !== -1) return next;
      state = this.#fail[state] as number;
    }
    return this.#rows[state * this.#width + symbol] as number;
  }

  #slot(state: number, symbol: number): number {
    return (Math.imul(state, 0x9e3779b1) ^ Math.imul(symbol, 0x85ebca6b)) >>> 7;
  }

  #insert(state: number, symbol: number, target: number): void {
    if (state < this.#shallow) {
      this.#rows[state * this.#width + symbol] = target;
      return;
    }
    let slot = this.#slot(state, symbol) & this.#mask;
    while (this.#states[slot] !== -1) slot = (slot + 1) & this.#mask;
    this.#states[slot] = state;
    this.#symbols[slot] = symbol;
    this.#targets[slot] = target;
  }

  #lookup(state: number, symbol: number): number {
    let slot = this.#slot(state, symbol) & this.#mask;
    for (;;) {
      const held = this.#states[slot] ?? -1;
      if (held === -1) return -1;
      if (held === state && this.#symbols[slot] === symbol) return this.#targets[slot] ?? 0;
      slot = (slot + 1) & this.#mask;
    }
  }

  /** A state's links are made of links of shorter prefixes, which are there already. */
  #link({ from, unit, to }: Edge): void {
    const suffix = from === 0 ? 0 : this.step(this.#fail[from] ?? 0, unit);
    this.#fail[to] = suffix;
    this.outputLinks[to] = this.outputs[suffix] === -1 ? (this.outputLinks[suffix] ?? 0) : suffix;
    if (to < this.#shallow) this.#fillRow(to, suffix);
  }

  /** Where the state itself has no edge it goes where its suffix goes, whose row is whole: it is shorter. */
  #fillRow(state: number, suffix: number): void {
    const own = state * this.#width;
    const other = suffix * this.#width;
    for (let symbol = 0; symbol < this.#width; symbol++) if (this.#rows[own + symbol] === 0) this.#rows[own + symbol] = this.#rows[other + symbol] as number;
  }
}

/** From a prefix by one more UTF-16 unit to the next. */
interface Edge {
  from: number;
  unit: number;
  to: number;
}

/** `words`: distinct and not empty; a word's index is its keyword id. Built level by level, with one table for all edges. */
export function buildTrie(words: readonly string[]): Trie {
  const edges: Edge[] = [];
  const ends: number[] = [-1];
  const states = new Int32Array(words.length);
  const known = new Map<number, number>();
  const longest = words.reduce((length, word) => Math.max(length, word.length), 0);
  for (let depth = 0; depth < longest; depth++) {
    known.clear();
    for (const [id, word] of words.entries()) {
      if (depth >= word.length) continue;
      const unit = word.charCodeAt(depth);
      const from = states[id] ?? 0;
      const key = from * 0x10000 + unit;
      let to = known.get(key);
      if (to === undefined) {
        to = ends.push(-1) - 1;
        known.set(key, to);
        edges.push({ from, unit, to });
      }
      states[id] = to;
      if (depth === word.length - 1) ends[to] = id;
    }
  }
  return new Trie(edges, Int32Array.from(ends));
}

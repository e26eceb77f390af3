/**
 * A flat Aho-Corasick trie over UTF-16 units. Edges live in one open-addressed hash table of typed arrays: a table of
 * states × alphabet would be gigabytes for thousands of Chinese keywords, a Map per state would double the garbage.
 */
export class Trie {
  /** By state: the keyword that ends here, or -1. */
  readonly outputs: Int32Array;
  /** By state: the longest proper suffix at which a keyword ends, or 0. */
  readonly outputLinks: Int32Array;
  readonly #fail: Int32Array;
  /** Character to class; 0 for one that no keyword contains. */
  readonly #classes: Uint16Array;
  readonly #fromRoot: Int32Array;
  readonly #mask: number;
  readonly #states: Int32Array;
  readonly #symbols: Uint16Array;
  readonly #targets: Int32Array;

  constructor(nodes: readonly Map<number, number>[], outputs: Int32Array) {
    this.outputs = outputs;
    this.#classes = new Uint16Array(0x10000);
    let classes = 0;
    let edges = 0;
    for (const node of nodes) {
      edges += node.size;
      for (const unit of node.keys()) if (this.#classes[unit] === 0) this.#classes[unit] = ++classes;
    }
    this.#fromRoot = new Int32Array(classes + 1);
    let capacity = 16;
    while (capacity < edges * 2) capacity *= 2;
    this.#mask = capacity - 1;
    this.#states = new Int32Array(capacity).fill(-1);
    this.#symbols = new Uint16Array(capacity);
    this.#targets = new Int32Array(capacity);
    for (const [state, node] of nodes.entries()) for (const [unit, target] of node) this.#insert(state, this.#classes[unit] ?? 0, target);
    this.#fail = new Int32Array(nodes.length);
    this.outputLinks = new Int32Array(nodes.length);
    this.#link(nodes);
  }

  step(from: number, unit: number): number {
    const symbol = this.#classes[unit] ?? 0;
    if (symbol === 0) return 0;
    let state = from;
    while (state !== 0) {
      const next = this.#lookup(state, symbol);
      if (next !== -1) return next;
      state = this.#fail[state] ?? 0;
    }
    return this.#fromRoot[symbol] ?? 0;
  }

  #slot(state: number, symbol: number): number {
    return (Math.imul(state, 0x9e3779b1) ^ Math.imul(symbol, 0x85ebca6b)) >>> 7;
  }

  #insert(state: number, symbol: number, target: number): void {
    if (state === 0) {
      this.#fromRoot[symbol] = target;
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

  /** Breadth first: a state's links are made of links of shorter ones. */
  #link(nodes: readonly Map<number, number>[]): void {
    const queue = [...(nodes[0] ?? new Map<number, number>()).values()];
    for (let head = 0; head < queue.length; head++) {
      const state = queue[head] as number;
      for (const [unit, target] of nodes[state] as Map<number, number>) {
        const suffix = this.step(this.#fail[state] ?? 0, unit);
        this.#fail[target] = suffix;
        this.outputLinks[target] = this.outputs[suffix] === -1 ? (this.outputLinks[suffix] ?? 0) : suffix;
        queue.push(target);
      }
    }
  }
}

/** `words`: distinct and not empty; a word's index is its keyword id. */
export function buildTrie(words: readonly string[]): Trie {
  const nodes: Map<number, number>[] = [new Map()];
  const ends: number[] = [-1];
  for (const [id, word] of words.entries()) {
    let state = 0;
    for (let index = 0; index < word.length; index++) {
      const unit = word.charCodeAt(index);
      let next = nodes[state]?.get(unit);
      if (next === undefined) {
        next = nodes.length;
        nodes[state]?.set(unit, next);
        nodes.push(new Map());
        ends.push(-1);
      }
      state = next;
    }
    ends[state] = id;
  }
  return new Trie(nodes, Int32Array.from(ends));
}

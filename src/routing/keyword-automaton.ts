import type { KeywordProbe, RouteInput } from '../contracts/matcher.ts';
import { normaliseText } from './text.ts';
import { buildTrie, type Trie } from './trie.ts';
import { codePointBefore, isSpacedWordCharacter } from './word-edges.ts';

/** White space that is not one plain space: seldom there, and dear to replace. */
const UNEVEN_SPACE = /[^\S ]| {2}/;
const WHITESPACE = /\s+/gu;

/** A keyword as it is compared: normalised, with single spaces. '' for one that has nothing in it. */
export function normaliseKeyword(word: string): string {
  return normaliseText(word).trim().replace(WHITESPACE, ' ');
}

/**
 * Every keyword of every rule in one Aho-Corasick automaton: one pass over the text finds all that occur, so a decision
 * costs the same for ten rules as for ten thousand keywords. Words are found at word edges, CJK anywhere.
 */
export class KeywordAutomaton {
  readonly #ids = new Map<string, number>();
  readonly #words: string[] = [];
  readonly #startEdge: boolean[] = [];
  readonly #endEdge: boolean[] = [];
  readonly #probes: KeywordProbe[] = [];
  readonly #idOfProbe = new Map<KeywordProbe, number>();
  #hasPhrase = false;
  #trie: Trie | undefined;

  /** The same probe for the same keyword. All keywords come before the first text. */
  add(word: string): KeywordProbe {
    const normalised = normaliseKeyword(word);
    if (normalised === '') throw new Error(`the keyword ${JSON.stringify(word)} has nothing in it`);
    const existing = this.#ids.get(normalised);
    if (existing !== undefined) return this.#probes[existing] as KeywordProbe;
    const id = this.#words.length;
    this.#ids.set(normalised, id);
    this.#words.push(normalised);
    this.#startEdge.push(isSpacedWordCharacter(normalised.codePointAt(0) ?? 0));
    this.#endEdge.push(isSpacedWordCharacter(codePointBefore(normalised, normalised.length)));
    this.#hasPhrase ||= normalised.includes(' ');
    this.#trie = undefined;
    const probe: KeywordProbe = (input) => this.found(input).has(id);
    this.#probes.push(probe);
    this.#idOfProbe.set(probe, id);
    return probe;
  }

  /** Ahead of the first text, which would otherwise wait for it. */
  build(): void {
    if (this.#words.length > 0) this.#trie ??= buildTrie(this.#words);
  }

  idOf(probe: KeywordProbe): number | undefined {
    return this.#idOfProbe.get(probe);
  }

  /** The keywords that occur in this request's text; scanned once a request. */
  found(input: RouteInput): ReadonlySet<number> {
    let found = input.memo.get(this) as ReadonlySet<number> | undefined;
    if (!found) {
      found = this.scan(input.text);
      input.memo.set(this, found);
    }
    return found;
  }

  /** `text` is normalised already. */
  scan(text: string): ReadonlySet<number> {
    const found = new Set<number>();
    if (this.#words.length === 0 || text === '') return found;
    this.build();
    const trie = this.#trie as Trie;
    const subject = this.#hasPhrase && UNEVEN_SPACE.test(text) ? text.replace(WHITESPACE, ' ') : text;
    const { outputs, outputLinks, firstOutputs } = trie;
    let state = 0;
    for (let index = 0; index < subject.length; index++) {
      state = trie.step(state, subject.charCodeAt(index));
      for (let at = firstOutputs[state] as number; at !== 0; at = outputLinks[at] as number) {
        const id = outputs[at] as number;
        if (!found.has(id) && this.#standsAlone(subject, id, index + 1)) found.add(id);
      }
    }
    return found;
  }

  #standsAlone(text: string, id: number, end: number): boolean {
    if (this.#startEdge[id]) {
      const before = codePointBefore(text, end - (this.#words[id] ?? '').length);
      if (before !== -1 && isSpacedWordCharacter(before)) return false;
    }
    if (this.#endEdge[id] && end < text.length) return !isSpacedWordCharacter(text.codePointAt(end) ?? 0);
    return true;
  }
}

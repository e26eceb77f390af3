import { JsonPlace, toJsonText } from './json-place.ts';
import { MOST_HELD } from './open-end.ts';
import type { Hit, TextRules } from './rules.ts';
import type { Vault } from './vault.ts';

/** What is known of the text before a window's: enough to see where words and numbers begin. */
const CONTEXT = 8;
/** Goes on after a secret that is longer than what is held. */
const SECRET_REST = /^[A-Za-z0-9._+/=\s-]*/;

export interface WindowOptions {
  /** Undefined: nothing is looked for. */
  rules: TextRules | undefined;
  /** Its values come back; masks of what is found. */
  vault: Vault;
  /** JSON text: arguments of tools. */
  json?: boolean;
  /** Hears of every hit, once. May throw: then nothing more of the text is given. */
  onHit(hit: Hit): void;
  /** What takes the place of a hit; undefined: it stays. */
  replace(hit: Hit, value: string): string | undefined;
}

/**
 * A text that comes in pieces, and goes out in pieces in which nothing is left to be found: an end that may still become
 * something is held back until more comes. A whole text is one piece and its end.
 */
export class TextWindow {
  readonly #options: WindowOptions;
  readonly #place: JsonPlace | undefined;
  #context = '';
  #held = '';
  /** Units of the held text's beginning that are part of a secret that was too long. */
  #swallowing = false;

  constructor(options: WindowOptions) {
    this.#options = options;
    this.#place = options.json ? new JsonPlace() : undefined;
  }

  get holds(): boolean {
    return this.#held !== '';
  }

  /** More of the text; `last`: and no more comes. Gives what is decided. */
  push(piece: string, last = false): string {
    const more = this.#swallowing ? this.#swallow(piece) : piece;
    const text = this.#context + this.#held + more;
    const base = this.#context.length;
    if (text.length === base) return '';
    const { rules, vault } = this.#options;
    const { hits, open } = rules?.look(text) ?? { hits: [], open: text.length };
    const found = merged(hits.filter(({ start }) => start >= base));
    const end = last ? text.length : this.#endOf(text, base, found, Math.min(open, vault.open(text)));
    const out = this.#written(text, base, end, found);
    this.#context = text.slice(Math.max(0, end - CONTEXT), end);
    this.#held = text.slice(end);
    return out;
  }

  #endOf(text: string, base: number, found: readonly Found[], open: number): number {
    let end = Math.max(base, open);
    for (const { start, end: stop } of found) if (start < end && stop > end) end = start;
    if (text.length - end > MOST_HELD) {
      // Something that is longer than anything that is looked for: what was found of it goes, and the rest of it, too.
      this.#swallowing = found.some(({ start, end: stop }) => start <= end && stop >= text.length - 1);
      end = text.length;
    }
    const unit = text.charCodeAt(end - 1);
    return end > base && unit >= 0xd800 && unit <= 0xdbff ? end - 1 : end;
  }

  #swallow(piece: string): string {
    const rest = piece.replace(SECRET_REST, '');
    if (rest !== '') this.#swallowing = false;
    return rest;
  }

  #written(text: string, base: number, end: number, found: readonly Found[]): string {
    const { vault, replace, onHit } = this.#options;
    const decided = found.filter(({ start }) => start < end);
    for (const { hits } of decided) for (const hit of hits) onHit(hit);
    const places = [
      ...decided.flatMap((place) => {
        const by = replace(place.by, text.slice(place.start, place.end));
        return by === undefined ? [] : [{ start: place.start, end: Math.min(place.end, end), by, number: true }];
      }),
      ...vault.find(text.slice(base, end)).map(({ start, end: stop, value }) => ({ start: base + start, end: base + stop, by: value, number: false })),
    ].sort((a, b) => a.start - b.start);
    if (places.length === 0) {
      const plain = text.slice(base, end);
      this.#place?.pass(plain);
      return plain;
    }
    let out = '';
    let at = base;
    for (const { start, end: stop, by } of places) {
      if (start < at) continue;
      const before = text.slice(at, start);
      this.#place?.pass(before);
      out += before + (this.#place ? toJsonText(by, this.#place.inString) : by);
      // Quotes within what is taken out count for what comes behind it.
      this.#place?.pass(text.slice(start, stop));
      at = stop;
    }
    const rest = text.slice(at, end);
    this.#place?.pass(rest);
    return out + rest;
  }
}

/** Hits that lie over each other are one place: none of them may show at the edge of another. */
interface Found {
  start: number;
  end: number;
  /** Whose placeholder stands there. */
  by: Hit;
  hits: Hit[];
}

const WEIGHT = { block: 0, redact: 1, flag: 2 } as const;

function merged(hits: Hit[]): Found[] {
  const list: Found[] = [];
  // Flags take nothing out: they must not hide what does.
  const rank = (hit: Hit): number => WEIGHT[hit.guard.action];
  for (const hit of [...hits].sort((a, b) => a.start - b.start || rank(a) - rank(b) || b.end - a.end)) {
    const last = list.at(-1);
    if (last === undefined || hit.start >= last.end) {
      list.push({ start: hit.start, end: hit.end, by: hit, hits: [hit] });
      continue;
    }
    last.hits.push(hit);
    last.end = Math.max(last.end, hit.end);
    if (rank(hit) < rank(last.by)) last.by = hit;
  }
  return list;
}

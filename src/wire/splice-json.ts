import { stringifyJson } from './json.ts';

/** A JSON object as it came: its bytes (UTF-8), and what parsing gave. */
export interface JsonSource {
  bytes: Uint8Array;
  value: Readonly<Record<string, unknown>>;
}
export interface SpliceOptions {
  /** Does this member (or item of it) still say what the source says? */
  same(own: unknown, source: unknown, key: string): boolean;
  /** A value that must be written anew; of a list, each item. */
  write?: (value: unknown) => string;
}
/** Where a member or an item stands. An item's key is empty. */
interface Place {
  key: string;
  start: number;
  valueStart: number;
  end: number;
}

const QUOTE = 34;
const BACKSLASH = 92;
const COMMA = 44;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;
const OPEN_BRACKET = 91;
const CLOSE_BRACKET = 93;
/** Strings are mostly shorter than what a call of indexOf costs. */
const SHORT = 48;

/**
 * `own` as JSON text in which everything that the source says too stands byte for byte as it stood there: spaces, the order
 * of members, numbers as they were written (1.0, 1e3, integers beyond 2^53), escapes. Prompt caches depend on it, and so does
 * whoever signs. Undefined: the source cannot be taken apart safely (a name twice); then everything must be written anew.
 */
export function spliceJson(own: Readonly<Record<string, unknown>>, source: JsonSource, options: SpliceOptions): Buffer | undefined {
  const { buffer, byteOffset, byteLength } = source.bytes;
  const bytes = Buffer.from(buffer, byteOffset, byteLength);
  const open = bytes.indexOf(OPEN_BRACE);
  const places = open < 0 ? undefined : placesIn(bytes, open);
  const names = places && new Set(places.map(({ key }) => key));
  if (places === undefined || names === undefined || names.size !== places.length || names.has('__proto__')) return undefined;
  return new Splice(bytes, open, options).object(own, source.value, places, names);
}

class Splice {
  readonly #bytes: Buffer;
  readonly #open: number;
  readonly #same: SpliceOptions['same'];
  readonly #write: (value: unknown) => string;
  readonly #pieces: (Buffer | string)[] = [];
  /** Written anew, behind the pieces. */
  #texts: string[] = [];
  /** A stretch of the source that goes out as it is. */
  #from = 0;
  #to = 0;

  constructor(bytes: Buffer, open: number, { same, write = stringifyJson }: SpliceOptions) {
    this.#bytes = bytes;
    this.#open = open;
    this.#same = same;
    this.#write = write;
  }

  object(own: Readonly<Record<string, unknown>>, source: Readonly<Record<string, unknown>>, places: readonly Place[], old: ReadonlySet<string>): Buffer {
    let first = true;
    this.#from = this.#open;
    this.#to = this.#open + 1;
    for (const [at, place] of places.entries()) {
      if (!Object.hasOwn(own, place.key) || own[place.key] === undefined) continue;
      // Right behind the member before it: the source's own comma and spaces stay.
      const before = at === 0 ? this.#open + 1 : places[at - 1]?.end;
      if (this.#to === before) this.#to = place.valueStart;
      else this.#begin(first ? '' : ',', place.start, place.valueStart);
      first = false;
      this.#value(own[place.key], source[place.key], place);
    }
    for (const key in own) {
      const value = own[key];
      if (value === undefined || old.has(key)) continue;
      this.#put(`${first ? '' : ','}${JSON.stringify(key)}:${this.#write(value)}`);
      first = false;
    }
    const last = places.at(-1);
    const end = closingAfter(this.#bytes, last ? last.end : this.#open + 1);
    if (last && this.#to === last.end) this.#to = end;
    else this.#begin('', end - 1, end);
    this.#flush();
    this.#flushTexts();
    return toBytes(this.#pieces);
  }

  #value(own: unknown, source: unknown, place: Place): void {
    if (this.#same(own, source, place.key)) {
      this.#to = place.end;
      return;
    }
    const items = Array.isArray(own) && Array.isArray(source) && own.length > 0 && source.length > 0 ? placesIn(this.#bytes, place.valueStart) : undefined;
    if (items && items.length === (source as unknown[]).length) this.#list(own as unknown[], source as unknown[], items, place.key);
    else this.#put(this.#write(own));
    this.#from = place.end;
    this.#to = place.end;
  }

  /** Items that are as they were at the list's beginning and at its end: a history is put before, results are put behind. */
  #list(own: unknown[], source: unknown[], places: readonly Place[], key: string): void {
    const shorter = Math.min(own.length, source.length);
    let head = 0;
    while (head < shorter && this.#same(own[head], source[head], key)) head++;
    let tail = 0;
    while (tail < shorter - head && this.#same(own.at(-1 - tail), source.at(-1 - tail), key)) tail++;
    const rest = own.slice(head, own.length - tail);
    this.#put('[');
    if (head > 0) this.#items(places.slice(0, head));
    if (head > 0 && rest.length > 0) this.#put(',');
    for (const [at, item] of rest.entries()) {
      if (at > 0) this.#texts.push(',');
      this.#texts.push(item === undefined ? 'null' : this.#write(item));
    }
    if (tail > 0) {
      if (head > 0 || rest.length > 0) this.#put(',');
      this.#items(places.slice(source.length - tail));
    }
    this.#put(']');
  }

  /** As they stand in the source, what is between them too. */
  #items(places: readonly Place[]): void {
    const [first, last] = [places[0], places.at(-1)];
    if (first && last) this.#stretch(first.valueStart, last.end);
  }

  #begin(separator: string, from: number, to: number): void {
    this.#flush();
    if (separator !== '') this.#texts.push(separator);
    this.#from = from;
    this.#to = to;
  }

  #put(text: string): void {
    this.#flush();
    this.#texts.push(text);
  }

  #flush(): void {
    if (this.#to > this.#from) this.#stretch(this.#from, this.#to);
    this.#from = this.#to;
  }

  #stretch(from: number, to: number): void {
    this.#flushTexts();
    this.#pieces.push(this.#bytes.subarray(from, to));
  }

  #flushTexts(): void {
    if (this.#texts.length > 0) this.#pieces.push(this.#texts.join(''));
    this.#texts = [];
  }
}

/** Texts go straight into the whole: a long history is not put into bytes of its own first. */
function toBytes(pieces: readonly (Buffer | string)[]): Buffer {
  let length = 0;
  for (const piece of pieces) length += typeof piece === 'string' ? Buffer.byteLength(piece) : piece.length;
  const bytes = Buffer.allocUnsafe(length);
  let at = 0;
  for (const piece of pieces) at += typeof piece === 'string' ? bytes.write(piece, at) : piece.copy(bytes, at);
  return bytes;
}

function closingAfter(bytes: Buffer, at: number): number {
  return bytes.indexOf(CLOSE_BRACE, at) + 1;
}

/** The members of the object, or the items of the list, that opens at `open`. The text has been parsed: it is valid JSON. */
function placesIn(bytes: Buffer, open: number): Place[] | undefined {
  const named = bytes[open] === OPEN_BRACE;
  const places: Place[] = [];
  let at = skipSpace(bytes, open + 1);
  while (at < bytes.length && bytes[at] !== CLOSE_BRACE && bytes[at] !== CLOSE_BRACKET) {
    const start = at;
    let key = '';
    if (named) {
      const end = endOfString(bytes, at);
      key = keyOf(bytes, start, end);
      // The colon stands between.
      at = skipSpace(bytes, skipSpace(bytes, end) + 1);
    }
    const end = skipValue(bytes, at);
    places.push({ key, start, valueStart: at, end });
    at = skipSpace(bytes, end);
    if (bytes[at] === COMMA) at = skipSpace(bytes, at + 1);
  }
  return at < bytes.length ? places : undefined;
}

function keyOf(bytes: Buffer, start: number, end: number): string {
  const text = bytes.toString('utf8', start + 1, end - 1);
  return text.includes('\\') ? String(JSON.parse(`"${text}"`)) : text;
}

function skipSpace(bytes: Buffer, from: number): number {
  let at = from;
  while (bytes[at] === 32 || bytes[at] === 10 || bytes[at] === 13 || bytes[at] === 9) at++;
  return at;
}

/** Behind the closing quote of the string literal that opens at `open`; the end of the bytes where it is not closed. */
export function endOfString(bytes: Buffer, open: number): number {
  let at = open + 1;
  for (const stop = Math.min(bytes.length, at + SHORT); at < stop; at++) {
    if (bytes[at] === BACKSLASH) at++;
    else if (bytes[at] === QUOTE) return at + 1;
  }
  for (;;) {
    const quote = bytes.indexOf(QUOTE, at);
    if (quote < 0) return bytes.length;
    let slashes = quote;
    while (slashes > at && bytes[slashes - 1] === BACKSLASH) slashes--;
    if ((quote - slashes) % 2 === 0) return quote + 1;
    at = quote + 1;
  }
}

function skipValue(bytes: Buffer, from: number): number {
  const first = bytes[from];
  if (first === QUOTE) return endOfString(bytes, from);
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET) {
    let at = from;
    while (at < bytes.length && !endsScalar(bytes[at])) at++;
    return at;
  }
  let depth = 0;
  for (let at = from; at < bytes.length; ) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = endOfString(bytes, at);
      continue;
    }
    at++;
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++;
    else if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && --depth === 0) return at;
  }
  return bytes.length;
}

function endsScalar(byte: number | undefined): boolean {
  return byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET || byte === 32 || byte === 10 || byte === 13 || byte === 9;
}

const SURROGATE = /\\u[dD][89a-fA-F]/;
const HARMLESS = /\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}/g;

/** Half of a surrogate pair, escaped: no API takes it. */
export function hasLoneSurrogates(bytes: Uint8Array): boolean {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
  return SURROGATE.test(text) && SURROGATE.test(text.replace(HARMLESS, ''));
}

/**
 * Server-sent events as bytes. Source: the WHATWG HTML standard, section 9.2.6: lines end in LF, CRLF or CR, a blank line
 * ends an event, a line that begins with a colon is a comment, one BOM may lead the stream.
 */
const LF = 10;
const CR = 13;

/** Cuts what a socket gives into runs of whole events. */
export class SseSplitter {
  #parts: Buffer[] = [];
  #held = 0;
  #started = false;
  #endedInCr = false;
  readonly #maxEventBytes: number;

  constructor(maxEventBytes: number = Number.POSITIVE_INFINITY) {
    this.#maxEventBytes = maxEventBytes;
  }

  /** Whole events with their blank lines, or undefined while none is complete. Throws a RangeError when one event grows beyond the limit. */
  push(piece: Buffer): Buffer | undefined {
    let bytes = piece;
    // The LF of a CRLF whose CR ended the last run belongs to that run.
    if (this.#endedInCr && bytes.length > 0) {
      this.#endedInCr = false;
      if (bytes[0] === LF) bytes = bytes.subarray(1);
    }
    if (bytes.length === 0) return undefined;
    // Without a line end nothing can be complete: no need to join what is held.
    if (this.#held > 0 && bytes.indexOf(LF) < 0 && bytes.indexOf(CR) < 0) {
      this.#hold(bytes);
      return undefined;
    }
    const all = this.#held > 0 ? Buffer.concat([...this.#parts, bytes]) : bytes;
    const end = lastBoundary(all);
    this.#parts = [];
    this.#held = 0;
    if (end < all.length) this.#hold(all.subarray(end));
    if (end === 0) return undefined;
    this.#endedInCr = end === all.length && all[end - 1] === CR;
    return this.#begin(all.subarray(0, end));
  }

  /** What is left when the stream has ended, completed by its blank line; undefined when there is nothing. */
  flush(): Buffer | undefined {
    if (this.#held === 0) return undefined;
    const rest = Buffer.concat([...this.#parts, Buffer.from('\n\n')]);
    this.#parts = [];
    this.#held = 0;
    return this.#begin(rest);
  }

  #hold(bytes: Buffer): void {
    this.#held += bytes.length;
    if (this.#held > this.#maxEventBytes) throw new RangeError(`one event is larger than ${this.#maxEventBytes} bytes`);
    this.#parts.push(bytes);
  }

  #begin(bytes: Buffer): Buffer {
    if (this.#started) return bytes;
    this.#started = true;
    return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
  }
}

/** The index after the last blank line, 0 when there is none. */
function lastBoundary(bytes: Buffer): number {
  for (let i = bytes.length - 1; i > 0; i--) {
    const byte = bytes[i];
    if (byte !== LF && byte !== CR) continue;
    const start = byte === LF && bytes[i - 1] === CR ? i - 1 : i;
    if (start > 0 && (bytes[start - 1] === LF || bytes[start - 1] === CR)) return i + 1;
  }
  return 0;
}

/** Whole events, one by one; runs of blank lines give none. */
export function cutEvents(bytes: Buffer): Buffer[] {
  const events: Buffer[] = [];
  let start = 0;
  let lineStart = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i];
    if (byte !== LF && byte !== CR) continue;
    const blank = i === lineStart;
    if (byte === CR && bytes[i + 1] === LF) i++;
    if (blank) {
      if (lineStart > start) events.push(bytes.subarray(start, i + 1));
      start = i + 1;
    }
    lineStart = i + 1;
  }
  if (start < bytes.length) events.push(bytes.subarray(start));
  return events;
}

export interface ServerSentEvent {
  /** The `event:` field; '' when there is none. */
  event: string;
  /** The data lines joined by LF; undefined for an event without any (comments). */
  data: string | undefined;
}

const LINE_END = /\r\n|\n|\r/;

export function readEvent(bytes: Buffer): ServerSentEvent {
  const text = bytes.toString('utf8');
  const plain = readPlain(text);
  if (plain) return plain;
  let event = '';
  let data: string | undefined;
  for (const line of text.split(LINE_END)) {
    if (line.startsWith('data:')) {
      const value = line.startsWith('data: ') ? line.slice(6) : line.slice(5);
      data = data === undefined ? value : `${data}\n${value}`;
    } else if (line.startsWith('event:')) {
      event = line.slice(6).trim();
    }
  }
  return { event, data };
}

/** The shape that nearly every event has (a name or none, one line of data, LF), without cutting it into lines. */
function readPlain(text: string): ServerSentEvent | undefined {
  const named = text.startsWith('event: ');
  const at = named ? text.indexOf('\n') + 1 : 0;
  if (!text.startsWith('data: ', at) || !text.endsWith('\n\n') || text.indexOf('\n', at) !== text.length - 2 || text.includes('\r')) return undefined;
  return { event: named ? text.slice(7, at - 1).trim() : '', data: text.slice(at + 6, -2) };
}

/** One event that carries `data` (a single line of JSON) and nothing else. */
export function toEvent(data: string): Buffer {
  return Buffer.from(`data: ${data}\n\n`);
}

export const DONE_EVENT = Buffer.from('data: [DONE]\n\n');

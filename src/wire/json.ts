import { randomBytes } from 'node:crypto';
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';

/**
 * JSON that keeps integers beyond 2^53 exact. JSON.parse rounds them, and Node 20 offers no access to the source text; so
 * such literals are wrapped as marked strings before parsing and unwrapped after writing. The mark is random per process:
 * no input can forge it. Threads of the process share it: values that were read here may be written there.
 */
const SHARED = 'hermes.long-integers';
const shared: unknown = getEnvironmentData(SHARED);
const word = typeof shared === 'string' ? shared : randomBytes(9).toString('base64url');
setEnvironmentData(SHARED, word);
const MARK = `\u0001${word}:`;
const MARKED = new RegExp(`"\\\\u0001${MARK.slice(1)}(-?\\d+)"`, 'g');
/** The fewest digits that may be beyond 2^53. */
const LONG = 16;
/** A string literal, or an integer of 16 digits and more that stands where a value may stand. */
const TOKENS = /"(?:[^"\\]|\\.)*"|(?<![\d.eE+-])-?\d{16,}(?![\d.eE])/g;

/** Looks at every sixteenth letter, for each text that is parsed passes here: no run of so many digits lies between two of them. */
function hasLongNumber(text: string): boolean {
  for (let at = LONG - 1; at < text.length; at += LONG) {
    if (!isDigit(text, at)) continue;
    let start = at;
    while (isDigit(text, start - 1)) start--;
    let end = at + 1;
    while (end - start < LONG && isDigit(text, end)) end++;
    if (end - start >= LONG) return true;
  }
  return false;
}
function isDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= 48 && code <= 57;
}

/** Throws a SyntaxError like JSON.parse. */
export function parseJson(text: string): unknown {
  if (!hasLongNumber(text)) return JSON.parse(text);
  return JSON.parse(
    text.replace(TOKENS, (token) => (token.charCodeAt(0) === 34 || Number.isSafeInteger(Number(token)) ? token : JSON.stringify(MARK + token))),
  );
}

/** Writes what `parseJson` read, with its long integers as they were. */
export function stringifyJson(value: unknown, replace?: (key: string, member: unknown) => unknown): string {
  const text = JSON.stringify(value, replace);
  return text?.includes(MARK.slice(1)) ? text.replace(MARKED, '$1') : text;
}

/** What `parseJson` read, with its long integers as strings of their digits: for writers that know nothing of the mark. */
export function longIntegersAsText(value: unknown): unknown {
  const text = JSON.stringify(value);
  return text?.includes(MARK.slice(1)) ? JSON.parse(text.replace(MARKED, '"$1"')) : value;
}

/** Parses bytes of UTF-8; a byte order mark is passed over. */
export function parseJsonBytes(bytes: Uint8Array): unknown {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  return parseJson(text.charCodeAt(0) === 0xfeff ? text.slice(1) : text);
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

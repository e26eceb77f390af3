import { LONGEST_KEY, SECRET_START } from './secrets.ts';

/**
 * From where on a text that goes on may still turn out to hold something: the end that a stream holds back. Everything before
 * it is decided. Bounded, so that no answer can make hermes hold all of it.
 */

/** What is held of a stream at most. */
export const MOST_HELD = 12_500;
/** Longest number with what stands between its groups. */
const LONGEST_NUMBER = 48;
/** Longest address: 64 characters before the `@`, 255 behind it. */
const LONGEST_WORD = 400;

const WORD = 1;
const NUMBER = 2;
const classes = new Uint8Array(128);
for (const unit of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._%+-@') classes[unit.charCodeAt(0)] = WORD;
for (const unit of '0123456789 ().+-') classes[unit.charCodeAt(0)] = (classes[unit.charCodeAt(0)] ?? 0) | NUMBER;

function runStart(text: string, kind: number, most: number): number {
  let at = text.length;
  const least = Math.max(0, at - most);
  while (at > least && ((classes[text.charCodeAt(at - 1)] ?? 0) & kind) !== 0) at--;
  return at;
}

/** Digits and what groups them; an X ends Chinese ids. */
export function openNumber(text: string): number {
  const bare = /\d[Xx]$/.test(text.slice(-2)) ? text.slice(0, -1) : text;
  let at = runStart(bare, NUMBER, LONGEST_NUMBER);
  while (at < bare.length && !/[\d+(]/.test(bare.charAt(at))) at++;
  return at === bare.length ? text.length : at;
}

const IBAN_END = /(?<![A-Za-z0-9])[A-Za-z]{1,2}$|(?<![A-Za-z0-9])[A-Za-z]{2}\d{1,2}(?:[ -]?[A-Za-z0-9]){0,32}[ -]?$/;
export function openIban(text: string): number {
  const tail = text.slice(-50);
  const match = IBAN_END.exec(tail);
  return match ? text.length - tail.length + match.index : text.length;
}

/** A word: an address or a key may begin in it. A long one is held only while it begins like a key. */
export function openWord(text: string): number {
  const start = runStart(text, WORD, MOST_HELD);
  if (text.length - start <= LONGEST_WORD) return start;
  const secret = SECRET_START.exec(text.slice(start));
  return secret ? start + secret.index : text.length - Math.max(LONGEST_WORD, LONGEST_KEY);
}

const BEGIN = '-----BEGIN ';
export function openPrivateKey(text: string): number {
  const at = text.lastIndexOf(BEGIN);
  if (at >= 0) {
    const block = text.slice(at);
    const heading = /^-----BEGIN ([A-Z0-9 ]{0,60})-----/.exec(block);
    if (heading ? heading[1]?.includes('PRIVATE KEY') && !/-----END [A-Z0-9 ]{0,60}-----/.test(block) : /^-----BEGIN [A-Z0-9 ]{0,60}-{0,4}$/.test(block))
      return at;
  }
  for (let length = Math.min(BEGIN.length - 1, text.length); length > 0; length--) if (text.endsWith(BEGIN.slice(0, length))) return text.length - length;
  return text.length;
}

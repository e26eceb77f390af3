/**
 * Byte pair encoding takes quadratic time on a run without a word edge (tiktoken: 10,000 times `a` take 85 ms), so texts
 * are cut before they are encoded. A cut between a letter and one separator that leads another letter lies on an edge of
 * both encodings' own patterns: the count stays exact. Where a run has no such place it is cut anyway, and the count may
 * be off by one a cut.
 */
const PIECE = 1000;
const RUN_PIECE = 400;
/** Not an apostrophe: `don't` is one word. Not a combining mark: it belongs to its letter. */
const EDGE = /\p{L}(?=[^\p{L}\p{N}\p{M}\r\n'’]\p{L})/gu;

export function* cutPieces(text: string): Generator<string> {
  let at = 0;
  while (text.length - at > PIECE) {
    const end = cutPoint(text, at);
    yield text.slice(at, end);
    at = end;
  }
  if (at < text.length) yield text.slice(at);
}

function cutPoint(text: string, at: number): number {
  const window = text.slice(at + RUN_PIECE, at + PIECE);
  let edge = -1;
  for (const match of window.matchAll(EDGE)) edge = match.index + match[0].length;
  const end = edge < 0 ? at + RUN_PIECE : at + RUN_PIECE + edge;
  // Never between the halves of a surrogate pair.
  return isHighSurrogate(text.charCodeAt(end - 1)) ? end + 1 : end;
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

const WORD = /[\p{L}\p{N}\p{M}_]/u;
/** Scripts that are written without spaces, or whose endings are glued on (Korean): a keyword in them hits anywhere. By extension, so that `ー` counts. */
const UNSPACED = /[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{scx=Bopo}\p{scx=Yiii}\p{scx=Thai}\p{scx=Laoo}\p{scx=Khmr}\p{scx=Mymr}\p{scx=Tibt}]/u;

/** 0: not asked yet, 1: yes, 2: no. A property lookup costs far more than the scan of a character does. */
const known = new Uint8Array(0x10000);

/** A word character of a spaced script: the only kind beside which a word does not end. */
export function isSpacedWordCharacter(codePoint: number): boolean {
  if (codePoint > 0xffff) return compute(codePoint);
  const seen = known[codePoint];
  if (seen) return seen === 1;
  const is = compute(codePoint);
  known[codePoint] = is ? 1 : 2;
  return is;
}

function compute(codePoint: number): boolean {
  const character = String.fromCodePoint(codePoint);
  return WORD.test(character) && !UNSPACED.test(character);
}

/** The code point that ends before `index`; -1 at the start. */
export function codePointBefore(text: string, index: number): number {
  if (index <= 0) return -1;
  const low = text.charCodeAt(index - 1);
  if (low >= 0xdc00 && low <= 0xdfff && index > 1) return text.codePointAt(index - 2) ?? low;
  return low;
}

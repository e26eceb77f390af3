const BEYOND_ASCII = /[^\p{ASCII}]/u;
/** Digits and full-width forms of any script, and what is set between the groups of a number. One UTF-16 unit each. */
const FOLDED = /[\uff01-\uff5e]|[\u00a0\u2000-\u200a\u202f\u3000]|[\u2010-\u2015\u2212]|(?=[\u0600-\ud7ff])\p{Nd}/gu;

/** The same text unit by unit, so that places stay what they are: full-width and foreign digits as 0-9, odd spaces as spaces, dashes as `-`. */
export function fold(text: string): string {
  return BEYOND_ASCII.test(text) ? text.replace(FOLDED, foldUnit) : text;
}

function foldUnit(unit: string): string {
  const code = unit.charCodeAt(0);
  if (code >= 0xff01 && code <= 0xff5e) return String.fromCharCode(code - 0xfee0);
  if (code === 0x2212 || (code >= 0x2010 && code <= 0x2015)) return '-';
  if (code === 0xa0 || (code >= 0x2000 && code <= 0x200a) || code === 0x202f || code === 0x3000) return ' ';
  return String(digitOf(code));
}

/** Decimal digits stand in runs of ten: the run's beginning is the zero. */
function digitOf(code: number): number {
  let first = code;
  while (code - first < 9 && /\p{Nd}/u.test(String.fromCharCode(first - 1))) first--;
  return (code - first) % 10;
}

import type { Span } from './span.ts';

/** Longest secret of one run of characters that is looked for. */
export const LONGEST_KEY = 512;
/** Keys by the shape that their makers give them, so that scanners can tell. */
const SHAPES = [
  'sk-(?=[A-Za-z0-9_-]{0,511}\\d)[A-Za-z0-9_-]{16,508}',
  '(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,256}',
  '(?:AKIA|ASIA)[0-9A-Z]{16}',
  'AIza[0-9A-Za-z_-]{35}',
  'gh[pousr]_[A-Za-z0-9]{36,255}',
  'github_pat_[A-Za-z0-9_]{22,255}',
  'glpat-[A-Za-z0-9_-]{20,255}',
  'xox[abeprs]-[A-Za-z0-9-]{10,255}',
  'hf_[A-Za-z0-9]{30,255}',
  'npm_[A-Za-z0-9]{36}',
  'SG\\.[A-Za-z0-9_-]{16,64}\\.[A-Za-z0-9_-]{16,64}',
  'LTAI(?=[A-Za-z0-9]{0,30}\\d)[A-Za-z0-9]{12,30}',
  'AKID(?=[A-Za-z0-9]{0,48}\\d)[A-Za-z0-9]{13,48}',
  'ya29\\.[A-Za-z0-9_-]{20,500}',
  'dop_v1_[a-f0-9]{64}',
  'pypi-[A-Za-z0-9_-]{50,500}',
];
const API_KEY = new RegExp(`(?<![A-Za-z0-9_])(?:${SHAPES.join('|')})`, 'g');
const JWT = /(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{8,6000}\.[A-Za-z0-9_-]{0,1000}/g;
/** Does a long run begin like a secret? */
export const SECRET_START = /(?<![A-Za-z0-9_])(?:sk[-_]|[rp]k_|AKI|ASIA|AIza|gh[pousr]_|github_pat_|glpat-|xox|hf_|npm_|SG\.|LTAI|eyJ|ya29\.|dop_|pypi-)/;

const LINE = '(?:\\s|\\\\[rn])*[A-Za-z0-9+/=]';
/** RFC 7468, and the older form with headers; one that was cut off too. Escaped line breaks: keys stand in JSON and in environment files. */
const PRIVATE_KEY = new RegExp(
  `-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[\\s\\S]{0,12000}?-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|(?:${LINE}{16,})+(?:${LINE}{0,15})?)`,
  'g',
);

export function findApiKeys(text: string): Span[] {
  return spansOf(text, API_KEY);
}
export function findJwts(text: string): Span[] {
  return spansOf(text, JWT);
}
export function findPrivateKeys(text: string): Span[] {
  return spansOf(text, PRIVATE_KEY);
}

function spansOf(text: string, pattern: RegExp): Span[] {
  return [...text.matchAll(pattern)].map(({ index, 0: { length } }) => ({ start: index, end: index + length }));
}

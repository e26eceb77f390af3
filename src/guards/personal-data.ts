import type { Span } from './span.ts';

/** Finders of personal data in folded text. Each candidate is checked where its kind has a check sum, so that order numbers stay what they are. */

const CARD =
  /(?<!\d)(?:[2-6]\d{3}(?:[ .-]{0,2}\d{4}){3}([ .-]{0,2}\d{1,3})?|3[47]\d\d[ .-]{0,2}\d{6}[ .-]{0,2}\d{5}|3[068]\d\d[ .-]{0,2}\d{6}[ .-]{0,2}\d{4}|[2-6]\d{12,18})(?!\d)/g;
/** Mobile and land lines of China, numbers with a country's prefix, and the North American way of writing them. */
const PHONES = [
  /(?<!\d)(?<!\d\.)(?:(?:\+|00)?86[ -]{0,2})?1[3-9]\d[ -]?\d{4}[ -]?\d{4}(?!\d)/g,
  /(?<!\d)(?:(?:\+|00)86[ -]?)?0\d{2,3}[ -]\d{7,8}(?!\d)/g,
  /(?<![\d+])\+(?:[ ().-]{0,2}\d){7,15}(?!\d)/g,
  /(?<!\d)(?:1[ .-])?(?:\(\d{3}\) ?|\d{3}[.-])\d{3}[.-]\d{4}(?!\d)/g,
];
const EMAIL = /(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}/g;
/** GB 11643: region, date of birth, serial number, check character. */
const CN_ID = /(?<!\d)[1-9]\d{5}(?:18|19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{3}[\dXx](?![\dA-Za-z])/g;
const CN_ID_WEIGHTS = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2];
const CN_ID_CHECKS = '10X98765432';
const IBAN_START = /(?<![A-Za-z0-9])[A-Z]{2}\d\d/gi;
/** ISO 13616: characters by country. */
const IBAN_LENGTHS = new Map(
  'AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 EE20 EG29 ES24 FI18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 MC27 MD24 ME22 MK19 MR27 MT31 MU30 NL18 NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22 SA24 SC31 SE24 SI19 SK24 SM27 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20'
    .split(' ')
    .map((entry) => [entry.slice(0, 2), Number(entry.slice(2))] as const),
);

export function findCards(text: string): Span[] {
  const found: Span[] = [];
  CARD.lastIndex = 0;
  for (let match = CARD.exec(text); match; match = CARD.exec(text)) {
    const [whole, more = ''] = match;
    // A security code or a date behind the number is no part of it.
    const length = [whole.length, whole.length - more.length].find((end) => luhn(whole.slice(0, end)));
    if (length !== undefined) found.push({ start: match.index, end: match.index + length });
    CARD.lastIndex = match.index + (length ?? 1);
  }
  return found;
}

function luhn(text: string): boolean {
  let sum = 0;
  let second = false;
  let digits = 0;
  for (let at = text.length - 1; at >= 0; at--) {
    const digit = text.charCodeAt(at) - 48;
    if (digit < 0 || digit > 9) continue;
    const value = second ? digit * 2 : digit;
    sum += value > 9 ? value - 9 : value;
    second = !second;
    digits++;
  }
  return digits >= 13 && sum % 10 === 0;
}

export function findPhones(text: string): Span[] {
  return PHONES.flatMap((pattern) => [...text.matchAll(pattern)].map(({ index, 0: { length } }) => ({ start: index, end: index + length })));
}

export function findEmails(text: string): Span[] {
  return [...text.matchAll(EMAIL)].map(({ index, 0: { length } }) => ({ start: index, end: index + length }));
}

export function findCnIds(text: string): Span[] {
  const found: Span[] = [];
  for (const { index, 0: id } of text.matchAll(CN_ID)) {
    const sum = CN_ID_WEIGHTS.reduce((total, weight, at) => total + weight * (id.charCodeAt(at) - 48), 0);
    if (CN_ID_CHECKS[sum % 11] === id.charAt(17).toUpperCase()) found.push({ start: index, end: index + id.length });
  }
  return found;
}

export function findIbans(text: string): Span[] {
  const found: Span[] = [];
  for (const { index } of text.matchAll(IBAN_START)) {
    const length = IBAN_LENGTHS.get(text.slice(index, index + 2).toUpperCase());
    const end = length === undefined ? undefined : endOfIban(text, index, length);
    if (end !== undefined) found.push({ start: index, end });
  }
  return found;
}

/** Where this many letters and digits, in groups or not, end; undefined: they are no IBAN. */
function endOfIban(text: string, start: number, length: number): number | undefined {
  let plain = '';
  let at = start;
  while (plain.length < length && at < text.length) {
    const unit = text.charAt(at++);
    if (/[A-Za-z0-9]/.test(unit)) plain += unit.toUpperCase();
    else if (unit !== ' ' && unit !== '-') return undefined;
  }
  if (plain.length < length || /[A-Za-z0-9]/.test(text.charAt(at))) return undefined;
  // ISO 7064: the country and its check digits to the end, letters as two digits, rest 1 of 97.
  let rest = 0;
  for (const unit of plain.slice(4) + plain.slice(0, 4)) {
    const value = Number.parseInt(unit, 36);
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97;
  }
  return rest === 1 ? at : undefined;
}

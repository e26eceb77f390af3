import { stringifyJson } from '../../../wire/json.ts';

/**
 * Identifiers and values as both engines can hold them. PostgreSQL refuses U+0000 in a text, and a lone surrogate has no UTF-8
 * form: encoders put U+FFFD in its place, so that two different session ids would become one. Control characters and lone
 * surrogates are written as U+E000 (private use) and four hex digits, and so is U+E000 itself: no two texts meet.
 */
const MARK = '\uE000';
const UNSAFE = /\p{Control}|\p{Surrogate}|\uE000/gu;
const ESCAPED = /\uE000([0-9a-f]{4})/g;

/** Nearly all are: told without Unicode's tables. */
const PRINTABLE_ASCII = /^[ -~]*$/;

export function encodeText(text: string): string {
  if (PRINTABLE_ASCII.test(text)) return text;
  return text.replace(UNSAFE, (unit) => MARK + unit.charCodeAt(0).toString(16).padStart(4, '0'));
}
export function decodeText(text: string): string {
  return text.includes(MARK) ? text.replace(ESCAPED, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))) : text;
}

/** JSON is free of both hazards (it writes escapes), but knows no bigint: only traces have any, and a replacer costs several times the rest. */
export function toJson(value: unknown): string {
  try {
    return stringifyJson(value);
  } catch {
    return stringifyJson(value, (_, member: unknown) => (typeof member === 'bigint' ? Number(member) : member));
  }
}

import { isRecord } from '../../wire/json.ts';

export type Block = Readonly<Record<string, unknown>>;

export function isBlock(value: unknown): value is Block {
  return isRecord(value);
}
export function toBlock(value: unknown): Block {
  return isRecord(value) ? value : {};
}
export function toList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
export function toText(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : typeof value === 'number' ? String(value) : undefined;
}
export function toNumber(value: unknown): number | undefined {
  const number = typeof value === 'number' ? value : typeof value === 'string' && value.trim() !== '' ? Number(value) : Number.NaN;
  return Number.isFinite(number) ? number : undefined;
}

const VARIABLE = /^os\.environ\/([A-Za-z_][A-Za-z0-9_]*)$/;
/** The variable's name of `os.environ/NAME`. */
export function variableOf(value: unknown): string | undefined {
  return typeof value === 'string' ? VARIABLE.exec(value.trim())?.[1] : undefined;
}
/** A value as hermes reads it: variables as `${NAME}`. */
export function toSetting(value: unknown): string | undefined {
  const name = variableOf(value);
  return name === undefined ? toText(value) : `\${${name}}`;
}

/** Without the digits that binary fractions add: 1.5e-7 a token is 0.15 a million. */
export function perMillion(perToken: unknown): number | undefined {
  const value = toNumber(perToken);
  return value === undefined ? undefined : Number((value * 1e6).toPrecision(12));
}
export function toMilliseconds(seconds: unknown): number | undefined {
  const value = toNumber(seconds);
  return value === undefined || value <= 0 ? undefined : Math.max(1, Math.round(value * 1000));
}

/** The same object without what is undefined. */
export function present<T extends Record<string, unknown>>(object: T): T {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as T;
}

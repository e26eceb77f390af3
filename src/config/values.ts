import { z } from 'zod';

/** Timers beyond this fire at once in Node. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const SIZE_UNITS: Readonly<Record<string, number>> = { '': 1, b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 };
const TIME_UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A number, also one that came as text: environment values always do, and JSON must quote `${NAME}`. */
function toNumber(value: unknown): unknown {
  return typeof value === 'string' && /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(value.trim()) ? Number(value) : value;
}
function toBoolean(value: unknown): unknown {
  if (value === 'true') return true;
  return value === 'false' ? false : value;
}
function toBytes(value: unknown): unknown {
  const parts = typeof value === 'string' ? /^(\d+(?:\.\d+)?)\s*([kmg]?b?)$/i.exec(value.trim()) : null;
  if (!parts) return value;
  const unit = (parts[2] ?? '').toLowerCase();
  const factor = SIZE_UNITS[unit === '' || unit.endsWith('b') ? unit : `${unit}b`];
  return factor === undefined ? value : Math.floor(Number(parts[1]) * factor);
}
function toDuration(unitMs: number): (value: unknown) => unknown {
  return (value) => {
    const parts = typeof value === 'string' ? /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)$/i.exec(value.trim()) : null;
    const factor = parts ? TIME_UNITS_MS[(parts[2] ?? '').toLowerCase()] : undefined;
    return parts && factor !== undefined ? (Number(parts[1]) * factor) / unitMs : toNumber(value);
  };
}

/** The message when it is no number at all; bounds have their own. */
const ofType = (message: string) => (issue: { code?: string | undefined; input?: unknown }) =>
  issue.code === 'invalid_type' && issue.input !== undefined ? message : undefined;

export const text = () => z.string().refine((value) => value.trim() !== '', 'must not be empty');
/** An id that ends up in headers, labels and keys of stores. */
export const id = () =>
  z.string().regex(/^[^\s\p{C}][^\p{C}]{0,127}$/u, 'must be a name of 1 to 128 characters, without control characters, that does not begin with a space');
export const whole = (least: number, most = Number.MAX_SAFE_INTEGER) => z.preprocess(toNumber, z.number().int().min(least).max(most));
export const decimal = (least: number, most = Number.MAX_SAFE_INTEGER) => z.preprocess(toNumber, z.number().min(least).max(most));
export const flag = () => z.preprocess(toBoolean, z.boolean());
/** `false`, `true`, or by their hashes. */
export const captured = () => z.preprocess(toBoolean, z.literal([false, true, 'hashes'], { error: 'must be false, true or hashes' }));
export const bytes = (least = 1) =>
  z.preprocess(
    toBytes,
    z
      .number({ error: ofType('must be a size: bytes, or like 512kb, 20mb, 1gb') })
      .int('must be a whole number of bytes')
      .min(least)
      .meta({ also: 'size' }),
  );
export const milliseconds = (least = 0) =>
  z.preprocess(
    toDuration(1),
    z
      .number({ error: ofType('must be a whole number of milliseconds, or like 500ms, 15s, 2m') })
      .int('must be a whole number of milliseconds')
      .min(least)
      .max(LONGEST_TIMER_MS)
      .meta({ also: 'duration' }),
  );
export const seconds = (least = 0) =>
  z.preprocess(
    toDuration(1000),
    z
      .number({ error: ofType('must be a whole number of seconds, or like 90s, 10m, 24h') })
      .int('must be a whole number of seconds')
      .min(least)
      .max(10 ** 10)
      .meta({ also: 'duration' }),
  );

/** `*` patterns and plain names. */
export const patterns = () => z.array(text());
export const environmentName = () =>
  z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the NAME of an environment variable (letters, digits, _), not its value');

/** `02:00-08:00`, half-open; past midnight when the end is before the beginning. */
const HOURS = /^([01]?\d|2[0-3]):[0-5]\d\s*-\s*(([01]?\d|2[0-3]):[0-5]\d|24:00)$/;
export const hours = () =>
  z
    .string({ error: 'must be hours like "02:00-08:00"' })
    .regex(HOURS, 'must be hours like "02:00-08:00"')
    .refine((value) => {
      const [from, to] = value.split('-').map((part) => part.trim().padStart(5, '0'));
      return from !== to;
    }, 'begins and ends at the same time; a whole day is "00:00-24:00"');

const DAY = '(mon|tue|wed|thu|fri|sat|sun)';
const DAYS = new RegExp(`^${DAY}(-${DAY})?(,${DAY}(-${DAY})?)*$`);
/** `mon-fri`, `sat,sun`, or a list of these; handed on as one lower-case string. */
export const days = () =>
  z.preprocess(
    (value) => {
      const joined = Array.isArray(value) ? value.join(',') : value;
      return typeof joined === 'string' ? joined.toLowerCase().replace(/\s+/g, '') : joined;
    },
    z.string({ error: 'must be days like mon-fri or sat,sun' }).regex(DAYS, 'must be days like mon-fri or sat,sun (mon tue wed thu fri sat sun)'),
  );

function isTimezone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
export const timezone = () => z.string().refine(isTimezone, 'must be an IANA time zone like Asia/Shanghai or UTC');

/** An address without credentials in it, without its trailing slashes. */
export const address = () =>
  z
    .string()
    .transform((value) => value.trim().replace(/\/+$/, ''))
    .pipe(z.string().refine(isAddress, 'must be an http:// or https:// address'));
function isAddress(value: string): boolean {
  if (!/^https?:\/\//i.test(value) || /[\s\p{C}]/u.test(value)) return false;
  try {
    const url = new URL(value);
    return url.hostname !== '' && url.hash === '';
  } catch {
    return false;
  }
}
export const priority = () => z.enum(['urgent', 'normal', 'batch']);
/** Header values reach the wire as they are: a line break in one would be an injected header. */
export const headerMap = () =>
  z.record(
    z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, 'must be a header name'),
    z.preprocess(
      (value) => (typeof value === 'number' || typeof value === 'boolean' ? String(value) : value),
      z.string().regex(/^[\t\x20-\x7e\x80-\xff]*$/, 'must be a header value: one line'),
    ),
  );
export const stringMap = () =>
  z.record(
    z.string(),
    z.preprocess((value) => (typeof value === 'number' || typeof value === 'boolean' ? String(value) : value), z.string()),
  );

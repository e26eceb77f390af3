/**
 * How long an upstream asked to be left alone, in milliseconds, from `retry-after-ms` or `retry-after` (RFC 9110, 10.2.3:
 * seconds, fractions are taken too, or an HTTP date, reckoned from the answer's own `date`). What is unreadable or negative
 * is as if it were absent; never NaN.
 */
export function parseRetryAfter(headers: Readonly<Record<string, string>>): number | undefined {
  const ms = toNumber(headers['retry-after-ms']);
  if (ms !== undefined) return Math.round(ms);
  const text = headers['retry-after']?.trim();
  const seconds = toNumber(text);
  if (seconds !== undefined) return Math.round(seconds * 1000);
  // A bare number that was refused above (negative) must not be read as a year.
  if (!text || !/[a-z]/i.test(text)) return undefined;
  const at = Date.parse(text);
  const now = Date.parse(headers.date ?? '');
  return Number.isNaN(at) || Number.isNaN(now) ? undefined : Math.max(0, at - now);
}

function toNumber(text: string | undefined): number | undefined {
  const trimmed = text?.trim() ?? '';
  return /^\d+(?:\.\d+)?$/.test(trimmed) ? Number(trimmed) : undefined;
}

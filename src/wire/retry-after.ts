/** Nothing asks for longer with reason; and a wrong clock over there must not set an upstream aside for days. */
const LONGEST_MS = 3_600_000;

/**
 * How long an upstream asks to be left alone, in milliseconds, 0 to an hour; undefined when it does not say, or nothing
 * readable: a missing, empty, negative or garbled value is absent, never 0 and never NaN. `retry-after-ms` (OpenAI's and
 * Azure's) is finer and wins; `retry-after` is seconds, fractions too, or an HTTP date (RFC 9110, section 10.2.3), reckoned
 * from `now` (Unix milliseconds) or, without one, from the answer's own `date`.
 */
export function parseRetryAfter(headers: Readonly<Record<string, string>>, now: number = Date.parse(headers.date ?? '')): number | undefined {
  return bounded(toNumber(headers['retry-after-ms'])) ?? parseSeconds(headers['retry-after'], now);
}

function parseSeconds(value: string | undefined, now: number): number | undefined {
  const seconds = toNumber(value);
  if (seconds !== undefined) return bounded(seconds * 1000);
  // Date.parse takes almost anything; an HTTP date has a month's name and a time of day.
  if (value === undefined || !/[a-z]{3}.*\d:\d/i.test(value)) return undefined;
  return bounded(Math.max(0, Date.parse(value) - now));
}

function toNumber(value: string | undefined): number | undefined {
  const text = value?.trim();
  return text !== undefined && /^[+-]?\d+(\.\d*)?$/.test(text) ? Number(text) : undefined;
}

function bounded(ms: number | undefined): number | undefined {
  return ms === undefined || !(ms >= 0) ? undefined : Math.min(Math.round(ms), LONGEST_MS);
}

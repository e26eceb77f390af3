/**
 * Days and hours on the wall clock of a time zone. Offsets change at full quarters of an hour only (tz database, since
 * 1972), so one look-up a quarter is enough for all its moments.
 */
const QUARTER_MS = 900_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
/** The widest offsets are -12:00 and +14:00. */
const WIDEST_MS = 15 * HOUR_MS;

const formats = new Map<string, Intl.DateTimeFormat>();
function formatOf(timezone: string): Intl.DateTimeFormat {
  let format = formats.get(timezone);
  if (format === undefined) {
    const two = '2-digit';
    format = new Intl.DateTimeFormat('en-US', {
      timeZone: timezone,
      era: 'short',
      year: 'numeric',
      month: two,
      day: two,
      hour: two,
      minute: two,
      second: two,
      hourCycle: 'h23',
    });
    formats.set(timezone, format);
  }
  return format;
}

/** The newest look-up of each zone: calls come in order of time. */
const newest = new Map<string, { quarter: number; offsetMs: number }>();

/** What the zone's wall clock is ahead of UTC at this moment (Unix milliseconds). */
export function offsetAt(at: number, timezone: string): number {
  const quarter = Math.floor(at / QUARTER_MS);
  const known = newest.get(timezone);
  if (known?.quarter === quarter) return known.offsetMs;
  const start = quarter * QUARTER_MS;
  const part: Partial<Record<Intl.DateTimeFormatPartTypes, string>> = {};
  for (const { type, value } of formatOf(timezone).formatToParts(start)) part[type] = value;
  const wall = Date.UTC(Number(part.year), Number(part.month) - 1, Number(part.day), Number(part.hour), Number(part.minute), Number(part.second));
  const offsetMs = wall - start;
  newest.set(timezone, { quarter, offsetMs });
  return offsetMs;
}

/** Day of the week (0 is Sunday) and minute of the day. */
export function wallClock(at: number, timezone: string): { day: number; minute: number } {
  const wall = new Date(at + offsetAt(at, timezone));
  return { day: wall.getUTCDay(), minute: wall.getUTCHours() * 60 + wall.getUTCMinutes() };
}

/** `2026-11-30`: the day that the zone's calendar shows. */
export function dayOf(at: number, timezone: string): string {
  return new Date(at + offsetAt(at, timezone)).toISOString().slice(0, 10);
}

/** The newest hour of each zone, within one quarter of which the offset is known not to change. */
const hours = new Map<string, { quarter: number; hour: string }>();

/** `2026-11-30T17:00Z`, the beginning of the zone's hour: whole hours make whole days also where the offset has half an hour. */
export function hourOf(at: number, timezone: string): string {
  const quarter = Math.floor(at / QUARTER_MS);
  const known = hours.get(timezone);
  if (known?.quarter === quarter) return known.hour;
  const into = (((at + offsetAt(at, timezone)) % HOUR_MS) + HOUR_MS) % HOUR_MS;
  const hour = toHour(at - into);
  hours.set(timezone, { quarter, hour });
  return hour;
}
/** A moment as hours are written. */
export function toHour(at: number): string {
  return `${new Date(at).toISOString().slice(0, 16)}Z`;
}

const DAY = /^(\d{4})-(\d\d)-(\d\d)$/;
/** Is it a day that the calendar has? */
export function isDay(text: string): boolean {
  return DAY.test(text) && !Number.isNaN(Date.parse(text)) && new Date(text).toISOString().slice(0, 10) === text;
}
/** `days` later, or earlier when negative. */
export function addDays(day: string, days: number): string {
  return new Date(Date.parse(day) + days * DAY_MS).toISOString().slice(0, 10);
}

const starts = new Map<string, number>();
const MOST_STARTS = 1000;
/** The first moment of a day; where the clock jumps over midnight the moment of the jump. */
export function startOfDay(day: string, timezone: string): number {
  const key = `${day} ${timezone}`;
  let start = starts.get(key);
  if (start === undefined) {
    if (starts.size >= MOST_STARTS) starts.clear();
    const midnight = Date.parse(day);
    start = midnight - WIDEST_MS;
    // A day that a zone left out altogether (Samoa, 2011-12-30) is empty: it begins where the next one does.
    while (dayOf(start, timezone) < day) start += QUARTER_MS;
    starts.set(key, start);
  }
  return start;
}

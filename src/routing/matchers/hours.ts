import { defineMatcher } from '../../contracts/matcher.ts';
import { listing, readTexts, simpleCondition } from './conditions/simple.ts';

const RANGE = /^(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})$/;
const DAY = 24 * 60;

/** `"22:00-06:00"` or a list of such, half-open, in `routing.timezone`; a range may pass midnight. */
export default defineMatcher({
  compile(value, context) {
    const written = readTexts(value, 'hours');
    const ranges = written.map(readRange);
    const minuteOf = createWallClock(context.timezone);
    const place = context.timezone ?? 'local time';
    return simpleCondition(
      (input) => {
        const minute = minuteOf(input.now);
        return ranges.some(([from, to]) => (from < to ? minute >= from && minute < to : minute >= from || minute < to));
      },
      (input, hit) => `it is ${clockText(minuteOf(input.now))} (${place}), ${hit ? 'within' : 'outside'} hours ${listing(written)}`,
      ranges.length === 0 ? { never: 'hours is an empty list' } : {},
    );
  },
});

function readRange(text: string): [number, number] {
  const parts = RANGE.exec(text.trim());
  if (parts) {
    const [fromHour, fromMinute, toHour, toMinute] = parts.slice(1).map(Number) as [number, number, number, number];
    const from = fromHour * 60 + fromMinute;
    const to = toHour * 60 + toMinute;
    if (from < DAY && to <= DAY && fromMinute < 60 && toMinute < 60 && from !== to) return [from, to];
  }
  throw new Error(`hours takes "HH:MM-HH:MM" with two different times, not ${JSON.stringify(text)}`);
}

function clockText(minute: number): string {
  return `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`;
}

/** Minute of the day in a zone. Formatting costs microseconds, so each minute is formatted once. */
function createWallClock(timezone: string | undefined): (now: number) => number {
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', hourCycle: 'h23', ...(timezone !== undefined && { timeZone: timezone }) });
  } catch (cause) {
    throw new Error(`hours: there is no time zone ${JSON.stringify(timezone)}`, { cause });
  }
  let formatted = Number.NaN;
  let minute = 0;
  return (now) => {
    const epochMinute = Math.floor(now / 60_000);
    if (epochMinute !== formatted) {
      const [hours, minutes] = format.format(now).split(':').map(Number);
      minute = (hours ?? 0) * 60 + (minutes ?? 0);
      formatted = epochMinute;
    }
    return minute;
  };
}

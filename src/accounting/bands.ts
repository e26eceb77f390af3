import { wallClock } from './calendar.ts';

const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

export interface Band {
  /** `mon-fri`, `sat,sun`; absent: every day. */
  days?: string | undefined;
  /** `22:00-06:00`, half-open, may pass midnight: then the day is that of its start. */
  hours: string;
  timezone?: string | undefined;
}
interface Parsed {
  days: ReadonlySet<number> | undefined;
  start: number;
  end: number;
}

function toMinute(text: string): number {
  const [hours = 0, minutes = 0] = text.trim().split(':').map(Number);
  return hours * 60 + minutes;
}

function toDays(days: string): ReadonlySet<number> {
  const set = new Set<number>();
  for (const part of days.toLowerCase().split(',')) {
    const [from = '', to = from] = part
      .trim()
      .split('-')
      .map((name) => name.trim().slice(0, 3));
    const first = DAYS.indexOf(from);
    const last = DAYS.indexOf(to);
    if (first < 0 || last < 0) continue;
    for (let day = first; ; day = (day + 1) % 7) {
      set.add(day);
      if (day === last) break;
    }
  }
  return set;
}

// Bands belong to a configuration: what was read of one lives as long as that does.
const parsed = new WeakMap<Band, Parsed>();
function parse(band: Band): Parsed {
  let known = parsed.get(band);
  if (known === undefined) {
    const [from = '', to = ''] = band.hours.split('-');
    known = { days: band.days === undefined ? undefined : toDays(band.days), start: toMinute(from), end: toMinute(to) };
    parsed.set(band, known);
  }
  return known;
}

/** Does the band hold at this moment (Unix milliseconds)? `24:00` as an end is midnight; equal ends are a whole day. */
export function inBand(band: Band, at: number, timezone: string): boolean {
  const { day, minute } = wallClock(at, band.timezone ?? timezone);
  const { days, start, end } = parse(band);
  const holds = (on: number): boolean => days === undefined || days.has(on);
  if (start < end) return minute >= start && minute < end && holds(day);
  return (minute >= start && holds(day)) || (minute < end && holds((day + 6) % 7));
}

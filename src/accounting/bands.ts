const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

export interface Band {
  /** `mon-fri`, `sat,sun`; absent: every day. */
  days?: string | undefined;
  /** `22:00-06:00`, half-open, may pass midnight: then the day is that of its start. */
  hours: string;
  timezone?: string | undefined;
}

const formats = new Map<string, Intl.DateTimeFormat>();
function formatOf(timezone: string): Intl.DateTimeFormat {
  let format = formats.get(timezone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat('en-US', { timeZone: timezone, weekday: 'short', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
    formats.set(timezone, format);
  }
  return format;
}

/** Day of the week (0 is Sunday) and minute of the day on the wall clock of `timezone`. */
export function wallClock(at: number, timezone: string): { day: number; minute: number } {
  const parts = Object.fromEntries(
    formatOf(timezone)
      .formatToParts(at)
      .map(({ type, value }) => [type, value]),
  );
  return { day: DAYS.indexOf((parts.weekday ?? '').toLowerCase()), minute: Number(parts.hour) * 60 + Number(parts.minute) };
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

/** Does the band hold at this moment (Unix milliseconds)? */
export function inBand(band: Band, at: number, timezone: string): boolean {
  const { day, minute } = wallClock(at, band.timezone ?? timezone);
  const [from = '', to = ''] = band.hours.split('-');
  const start = toMinute(from);
  const end = toMinute(to);
  const days = band.days === undefined ? undefined : toDays(band.days);
  const holds = (on: number): boolean => days === undefined || days.has(on);
  if (start < end) return minute >= start && minute < end && holds(day);
  return (minute >= start && holds(day)) || (minute < end && holds((day + 6) % 7));
}

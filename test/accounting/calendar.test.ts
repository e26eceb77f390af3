import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { inBand } from '../../src/accounting/bands.ts';
import { addDays, dayOf, hourOf, isDay, startOfDay, wallClock } from '../../src/accounting/calendar.ts';

const ZONES = [
  'UTC',
  'Asia/Shanghai',
  'Asia/Kolkata',
  'Asia/Kathmandu',
  'America/New_York',
  'Europe/Berlin',
  'Australia/Lord_Howe',
  'America/St_Johns',
  'Africa/Cairo',
];
const at = (text: string): number => Date.parse(text);

/** The wall clock by another way: Intl, minute by minute, without anything remembered. */
function wallOf(moment: number, timeZone: string): string {
  return new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'short' }).format(moment);
}

describe('days and hours of a time zone', () => {
  it('agree with the wall clock at any moment of any zone', () => {
    fc.assert(
      fc.property(fc.constantFrom(...ZONES), fc.integer({ min: at('2015-01-01'), max: at('2040-01-01') }), (zone, moment) => {
        const [day = '', time = ''] = wallOf(moment, zone).split(' ');
        assert.equal(dayOf(moment, zone), day);
        const [hours = 0, minutes = 0] = time.split(':').map(Number);
        assert.equal(wallClock(moment, zone).minute, hours * 60 + minutes);
        assert.equal(wallClock(moment, zone).day, new Date(day).getUTCDay());
      }),
      { numRuns: 300 },
    );
  });
  it('every moment lies in the day that begins before it and ends after it', () => {
    fc.assert(
      fc.property(fc.constantFrom(...ZONES), fc.integer({ min: at('2020-01-01'), max: at('2030-01-01') }), (zone, moment) => {
        const day = dayOf(moment, zone);
        assert.ok(startOfDay(day, zone) <= moment);
        assert.ok(moment < startOfDay(addDays(day, 1), zone));
      }),
      { numRuns: 200 },
    );
  });
  it('whole hours make whole days, also where the offset has half an hour', () => {
    fc.assert(
      fc.property(fc.constantFrom(...ZONES), fc.integer({ min: at('2020-01-01'), max: at('2030-01-01') }), (zone, moment) => {
        const hour = at(hourOf(moment, zone));
        assert.ok(hour <= moment && moment - hour < 3_600_000);
        assert.equal(dayOf(hour, zone), dayOf(moment, zone));
      }),
      { numRuns: 300 },
    );
    assert.equal(hourOf(at('2026-11-30T18:45:00Z'), 'Asia/Kolkata'), '2026-11-30T18:30Z');
    assert.equal(hourOf(at('2026-11-30T17:59:59Z'), 'UTC'), '2026-11-30T17:00Z');
  });
  it('a day has 23 hours when clocks go forward, and 25 when they go back', () => {
    const hours = (day: string, zone: string): number => (startOfDay(addDays(day, 1), zone) - startOfDay(day, zone)) / 3_600_000;
    assert.equal(hours('2026-03-08', 'America/New_York'), 23);
    assert.equal(hours('2026-11-01', 'America/New_York'), 25);
    assert.equal(hours('2026-06-01', 'America/New_York'), 24);
    assert.equal(hours('2026-10-25', 'Europe/Berlin'), 25);
  });
  it('a day whose midnight does not exist begins with the jump', () => {
    // Cairo goes forward at midnight of the last Friday of April: 00:00 becomes 01:00.
    const start = startOfDay('2026-04-24', 'Africa/Cairo');
    assert.equal(wallOf(start, 'Africa/Cairo'), '2026-04-24 01:00');
    assert.equal(dayOf(start - 1, 'Africa/Cairo'), '2026-04-23');
  });
  it('knows what is no day', () => {
    for (const text of ['2026-02-30', '2026-13-01', '26-01-01', 'today', '', '2026-1-1']) assert.equal(isDay(text), false, text);
    assert.equal(isDay('2028-02-29'), true);
    assert.equal(addDays('2026-12-31', 1), '2027-01-01');
    assert.equal(addDays('2026-03-01', -1), '2026-02-28');
  });
});

describe('bands', () => {
  const zone = 'Asia/Shanghai';
  it('are half-open', () => {
    const band = { hours: '02:00-08:00' };
    assert.equal(inBand(band, at('2026-11-30T02:00:00+08:00'), zone), true);
    assert.equal(inBand(band, at('2026-11-30T07:59:59.999+08:00'), zone), true);
    assert.equal(inBand(band, at('2026-11-30T08:00:00+08:00'), zone), false);
    assert.equal(inBand(band, at('2026-11-30T01:59:59.999+08:00'), zone), false);
  });
  it('past midnight belong to the day on which they begin', () => {
    const friday = { days: 'fri', hours: '22:00-06:00' };
    assert.equal(inBand(friday, at('2026-12-04T23:00:00+08:00'), zone), true, 'Friday night');
    assert.equal(inBand(friday, at('2026-12-05T05:59:00+08:00'), zone), true, 'the morning after');
    assert.equal(inBand(friday, at('2026-12-05T22:30:00+08:00'), zone), false, 'Saturday night');
    assert.equal(inBand(friday, at('2026-12-04T05:00:00+08:00'), zone), false, "Thursday's night");
  });
  it('take ranges of days over the weekend, lists, and an end at 24:00', () => {
    const monday = at('2026-11-30T23:30:00+08:00');
    assert.equal(inBand({ days: 'sat-mon', hours: '20:00-24:00' }, monday, zone), true);
    assert.equal(inBand({ days: 'tue,thu', hours: '20:00-24:00' }, monday, zone), false);
    assert.equal(inBand({ hours: '00:00-24:00' }, monday, zone), true);
  });
  it('follow their own time zone, and the wall clock on the days that clocks change', () => {
    const band = { hours: '01:00-04:00', timezone: 'America/New_York' };
    // 2026-03-08: 02:00 EST becomes 03:00 EDT; the band lasts two hours that day.
    assert.equal(inBand(band, at('2026-03-08T06:30:00Z'), zone), true, '01:30 EST');
    assert.equal(inBand(band, at('2026-03-08T07:30:00Z'), zone), true, '03:30 EDT');
    assert.equal(inBand(band, at('2026-03-08T08:00:00Z'), zone), false, '04:00 EDT');
    // 2026-11-01: 01:30 comes twice.
    assert.equal(inBand(band, at('2026-11-01T05:30:00Z'), zone), true, '01:30 EDT');
    assert.equal(inBand(band, at('2026-11-01T06:30:00Z'), zone), true, '01:30 EST');
  });
});

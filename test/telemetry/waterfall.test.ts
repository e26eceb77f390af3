import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { Span } from '../../src/contracts/exchange.ts';
import { ExchangeTrace } from '../../src/telemetry/trace.ts';
import { toWaterfall } from '../../src/telemetry/waterfall.ts';

const span = (name: string, startMs: number, endMs: number): Span => ({ name, startMs, endMs, attributes: {} });
const shape = (spans: readonly Span[]): unknown[] =>
  spans.map(({ name, startMs, endMs, parent }) => [name, startMs, endMs, ...(parent === undefined ? [] : [parent])]);

describe('a waterfall', () => {
  it("names hermes' own time before, between and after the steps", () => {
    assert.deepEqual(shape(toWaterfall([span('auth', 2, 3), span('attempt', 10, 50)], 60)), [
      ['receive', 0, 2],
      ['auth', 2, 3],
      ['hermes', 3, 10],
      ['attempt', 10, 50],
      ['respond', 50, 60],
    ]);
  });
  it('gives the way from one step to the next to the next one', () => {
    assert.deepEqual(shape(toWaterfall([span('auth', 0, 1), span('limits', 1.2, 2)], 2)), [
      ['auth', 0, 1],
      ['limits', 1, 2],
    ]);
  });
  it('knows what lies within what', () => {
    assert.deepEqual(shape(toWaterfall([span('store read', 2, 4), span('session', 1, 5), span('attempt', 5, 9)], 9)), [
      ['receive', 0, 1],
      ['session', 1, 5],
      ['store read', 2, 4, 1],
      ['attempt', 5, 9],
    ]);
  });
  it('ends with the request: what ran on is cut, what began later is left out', () => {
    assert.deepEqual(shape(toWaterfall([span('attempt', 0, 20), span('late', 15, 16)], 10)), [['attempt', 0, 10]]);
  });
  it('is one span where nothing was recorded', () => {
    assert.deepEqual(shape(toWaterfall([], 7)), [['receive', 0, 7]]);
  });
  it('covers every moment, whatever was recorded', () => {
    const spans = fc.array(fc.tuple(fc.double({ min: -5, max: 120, noNaN: true }), fc.double({ min: 0, max: 60, noNaN: true })), { maxLength: 12 });
    fc.assert(
      fc.property(spans, fc.double({ min: 0.01, max: 100, noNaN: true }), (given, duration) => {
        const made = toWaterfall(
          given.map(([start, long], at) => span(`s${at}`, start, start + long)),
          duration,
        );
        let covered = 0;
        for (const { startMs, endMs } of made) {
          assert.ok(startMs <= covered + 0.001, 'a gap');
          assert.ok(startMs >= 0 && endMs <= duration && startMs <= endMs);
          covered = Math.max(covered, endMs);
        }
        assert.ok(Math.abs(covered - duration) < 0.001);
      }),
    );
  });
});

describe("a trace's ids", () => {
  const id = '1ed109f5-abb8-4243-9925-6893a321afe5';
  it("are the exchange's own in W3C's form", () => {
    const trace = new ExchangeTrace(id, 0, 0);
    assert.equal(trace.traceId, '1ed109f5abb8424399256893a321afe5');
    assert.equal(trace.spanId, '99256893a321afe5');
    assert.equal(trace.traceparent, undefined);
  });
  it("are the caller's when it takes part in a trace, and are passed on with our own span", () => {
    const trace = new ExchangeTrace(id, 0, 0, '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01');
    assert.equal(trace.traceId, '0af7651916cd43dd8448eb211c80319c');
    assert.equal(trace.parentSpanId, 'b7ad6b7169203331');
    assert.equal(trace.traceparent, '00-0af7651916cd43dd8448eb211c80319c-99256893a321afe5-01');
  });
  for (const bad of [
    '',
    'hello',
    '00-00000000000000000000000000000000-b7ad6b7169203331-01',
    '00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01',
    'ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  ])
    it(`are our own for the header ${JSON.stringify(bad)}`, () => {
      const trace = new ExchangeTrace(id, 0, 0, bad);
      assert.equal(trace.traceId, '1ed109f5abb8424399256893a321afe5');
      assert.equal(trace.traceparent, undefined);
    });
});

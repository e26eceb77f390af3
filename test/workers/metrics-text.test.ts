import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { MetricsFormat } from '../../src/contracts/telemetry.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { countsOf, mergeMetrics, parseMetrics, toMetricsText } from '../../src/workers/metrics-text.ts';
import { Totals } from '../../src/workers/totals.ts';
import { skipWithout } from '../services.ts';

const own = (text: string): string =>
  text
    .split('\n')
    .filter((line) => line.includes('hermes_'))
    .join('\n');
const merge = (texts: string[], format: MetricsFormat): string => own(toMetricsText(mergeMetrics(texts.map(parseMetrics)), format));

/** Values that Prometheus must escape are among the labels. */
const label = fc.constantFrom('a', 'b', 'with space', 'quote " and } brace', 'back\\slash', 'line\nbreak');
const event = fc.oneof(
  fc.record({ kind: fc.constant('count' as const), route: label, value: fc.integer({ min: 0, max: 1000 }) }),
  fc.record({ kind: fc.constant('time' as const), route: label, value: fc.integer({ min: 0, max: 400 }) }),
);
type Event = typeof event extends fc.Arbitrary<infer T> ? T : never;

async function played(events: readonly Event[], format: MetricsFormat): Promise<string> {
  const metrics = createMetrics();
  const counter = metrics.counter('hermes_test_total', 'Counted, with a \\ and a "quotation" in its help.', ['route']);
  const histogram = metrics.histogram('hermes_test_seconds', 'Timed.', ['route']);
  for (const { kind, route, value } of events) kind === 'count' ? counter.inc({ route }, value) : histogram.observe({ route }, value);
  return own(await metrics.text(format));
}
const lines = (text: string): string[] => text.split('\n').sort();

describe('the metrics of several workers', () => {
  it('are those that one process would have which did all of it', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(event, { maxLength: 20 }), { minLength: 1, maxLength: 4 }), async (shares) => {
        const texts = await Promise.all(shares.map((share) => played(share, 'openmetrics')));
        for (const format of ['text', 'openmetrics'] as const) assert.deepEqual(lines(merge(texts, format)), lines(await played(shares.flat(), format)));
      }),
      { numRuns: 60 },
    );
  });
  it('read and written are what they were', async () => {
    const metrics = createMetrics();
    metrics.histogram('hermes_test_seconds', 'Timed.').observe({}, 0.3, { id: 'the # { first', traceId: 'abc' });
    const text = await metrics.text('openmetrics');
    assert.match(text, /le="0\.5"\} 1 # \{trace_id="abc",x_request_id="the # \{ first"\} 0\.3 /);
    assert.equal(toMetricsText(parseMetrics(text), 'openmetrics'), text);
    assert.equal(own(toMetricsText(parseMetrics(text), 'text')), own(await metrics.text()));
  });
  it('have the newest exemplar of a bucket', async () => {
    const texts = await Promise.all(
      [2000, 9000, 4000].map((now) => {
        const metrics = createMetrics(() => now);
        metrics.histogram('hermes_test_seconds', 'Timed.').observe({}, 0.3, { id: `at ${now}` });
        return metrics.text('openmetrics');
      }),
    );
    const said = merge(texts, 'openmetrics');
    assert.match(said, /le="0\.5"\} 3 # \{x_request_id="at 9000"\} 0\.3 9\.000$/m);
    assert.ok(!said.includes('at 2000'));
  });
  it('tell of gauges the sum, or the worst, or the mean, as it makes sense', () => {
    const worker = (inFlight: number, state: number, up: number, share: number, lag: string, memory: number): string =>
      [
        ['hermes_requests_in_flight', '', inFlight],
        ['hermes_upstream_state', '{upstream="gpt 4"}', state],
        ['hermes_store_up', '{store="redis"}', up],
        ['hermes_route_default_share', '', share],
        ['nodejs_eventloop_lag_p99_seconds', '', lag],
        ['process_resident_memory_bytes', '', memory],
      ]
        .map(([name, labels, value]) => `# HELP ${name} x\n# TYPE ${name} gauge\n${name}${labels} ${value}`)
        .join('\n\n');
    const text = toMetricsText(mergeMetrics([worker(3, 0, 1, 0.25, 'Nan', 100), worker(4, 2, 0, 0.75, '0.5', 50)].map(parseMetrics)), 'text');
    const values = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    assert.deepEqual(values, [
      'hermes_requests_in_flight 7',
      'hermes_upstream_state{upstream="gpt 4"} 2',
      'hermes_store_up{store="redis"} 0',
      'hermes_route_default_share 0.5',
      'nodejs_eventloop_lag_p99_seconds 0.5',
      'process_resident_memory_bytes 150',
    ]);
  });
  it('keep counting for a worker that is gone, whose memory and requests in flight are gone with it', async () => {
    const text = (count: number): string =>
      `# HELP hermes_a x\n# TYPE hermes_a counter\nhermes_a_total ${count}\n\n# HELP hermes_b x\n# TYPE hermes_b gauge\nhermes_b 1\n`;
    const totals = new Totals<string>();
    const values = (): string[] => totals.text('', 'text').match(/^hermes_\w+ \d+$/gm) ?? [];
    totals.note('first', text(5));
    totals.note('second', text(7));
    assert.deepEqual(values(), ['hermes_a_total 12', 'hermes_b 2']);
    totals.leave('first');
    assert.deepEqual(values(), ['hermes_b 1', 'hermes_a_total 12'].sort());
    totals.note('its successor', text(1));
    assert.deepEqual(values(), ['hermes_a_total 13', 'hermes_b 2']);
    for (const gone of ['second', 'its successor', 'never seen']) totals.leave(gone);
    assert.deepEqual(values(), ['hermes_a_total 13']);
    assert.deepEqual([...countsOf(parseMetrics(text(1))).keys()], ['hermes_a']);
  });
  it('satisfy promtool', skipWithout('prometheus'), async () => {
    const texts = await Promise.all([0, 1].map(async () => createMetrics().text('openmetrics')));
    const said = execFileSync('promtool', ['check', 'metrics'], { input: toMetricsText(mergeMetrics(texts.map(parseMetrics)), 'text'), encoding: 'utf8' });
    assert.equal(said, '');
  });
});

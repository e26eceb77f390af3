import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { skipWithout } from '../services.ts';
import { costIn } from '../time-kit.ts';

describe('metrics', () => {
  it('count by label tuples, in the order of the labels that were declared', async () => {
    const metrics = createMetrics();
    const counter = metrics.counter('things_total', 'Things.', ['kind', 'place']);
    counter.inc({ place: 'here', kind: 'a' });
    counter.inc({ kind: 'a', place: 'here' }, 2.5);
    counter.inc({ kind: 'b', place: 'here' });
    const text = await metrics.text();
    assert.match(text, /^things_total\{kind="a",place="here"\} 3\.5$/m);
    assert.match(text, /^things_total\{kind="b",place="here"\} 1$/m);
    assert.match(text, /# HELP things_total Things\.\n# TYPE things_total counter\n/);
  });

  it('have a 0 from the start where there are no labels', async () => {
    const metrics = createMetrics();
    metrics.counter('quiet_total', 'Nothing yet.');
    assert.match(await metrics.text(), /^quiet_total 0$/m);
  });

  it('give the same metric for the same name, and refuse another type under it', async () => {
    const metrics = createMetrics();
    metrics.counter('same_total', 'One.').inc({});
    metrics.counter('same_total', 'One.').inc({});
    assert.match(await metrics.text(), /^same_total 2$/m);
    assert.throws(() => metrics.gauge('same_total', 'One.'), /same_total is of another type/);
  });

  it('put an observation into its bucket and all above it, a bound belonging to its own', async () => {
    const metrics = createMetrics();
    const histogram = metrics.histogram('wait_seconds', 'Waiting.', ['who'], [0.1, 1]);
    for (const seconds of [0.05, 0.1, 0.5, 7]) histogram.observe({ who: 'me' }, seconds);
    const text = await metrics.text();
    assert.match(text, /^wait_seconds_bucket\{who="me",le="0\.1"\} 2$/m);
    assert.match(text, /^wait_seconds_bucket\{who="me",le="1"\} 3$/m);
    assert.match(text, /^wait_seconds_bucket\{who="me",le="\+Inf"\} 4$/m);
    assert.match(text, /^wait_seconds_sum\{who="me"\} 7\.65$/m);
    assert.match(text, /^wait_seconds_count\{who="me"\} 4$/m);
  });

  it('escape what a label value may hold', async () => {
    const metrics = createMetrics();
    metrics.gauge('odd', 'Odd\nhelp.', ['name']).set({ name: 'a"b\\c\nd' }, 1);
    const text = await metrics.text();
    assert.match(text, /^odd\{name="a\\"b\\\\c\\nd"\} 1$/m);
    assert.match(text, /# HELP odd Odd\\nhelp\./);
  });

  it('stay bounded whatever is handed in: beyond 10,000 tuples everything is other', async () => {
    const metrics = createMetrics();
    const counter = metrics.counter('many_total', 'Many.', ['name']);
    for (let at = 0; at < 12_000; at++) counter.inc({ name: `n${at}` });
    const lines = (await metrics.text()).split('\n').filter((line) => line.startsWith('many_total{'));
    assert.equal(lines.length, 10_001);
    assert.ok(lines.includes('many_total{name="other"} 2000'));
  });

  it('are scraped at 10,000 series for no more than twice what writing such lines costs', async () => {
    const metrics = createMetrics();
    const counter = metrics.counter('wide_total', 'Wide.', ['a', 'b']);
    const labels = Array.from({ length: 10_000 }, (_, at) => ({ a: `a${at % 100}`, b: `b${Math.floor(at / 100)}` }));
    for (const one of labels) counter.inc(one);
    const lines = () => labels.map(({ a, b }) => `wide_total{a=${JSON.stringify(a)},b=${JSON.stringify(b)}} 1`).join('\n');
    const bare = createMetrics();
    const cost = await costIn(
      async () => lines().length + (await bare.text()).length,
      () => metrics.text(),
      9,
    );
    assert.ok(cost < 2, `${cost.toFixed(1)} times as much`);
  });

  it('tell of the process and the event loop', async () => {
    const text = await createMetrics().text();
    for (const name of ['process_cpu_seconds_total', 'process_resident_memory_bytes', 'nodejs_eventloop_lag_p99_seconds', 'nodejs_gc_duration_seconds'])
      assert.ok(text.includes(`# TYPE ${name} `), name);
  });
});

describe('promtool check metrics', skipWithout('prometheus'), () => {
  it('finds nothing in what is offered by default', async () => {
    const metrics = createMetrics();
    metrics.counter('hermes_example_total', 'An example.', ['kind']).inc({ kind: 'x' });
    metrics.histogram('hermes_example_seconds', 'An example.').observe({}, 1);
    const said = execFileSync('promtool', ['check', 'metrics'], { input: await metrics.text(), encoding: 'utf8' });
    assert.equal(said, '');
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createMetrics, formatFor } from '../../src/telemetry/metrics.ts';
import { KEY } from '../app-kit.ts';
import { type PrometheusService, skipWithout, startPrometheus, until } from '../services.ts';
import { type BusyApp, startBusyApp } from './busy-app.ts';

const TRACE = { id: '1ed109f5-abb8-4243-9925-6893a321afe5', traceId: '0af7651916cd43dd8448eb211c80319c' };

describe('metrics as OpenMetrics', () => {
  it('name a counter’s family without its suffix, write bounds as floats, and end with EOF', async () => {
    const metrics = createMetrics();
    metrics.counter('things_total', 'Things "quoted".', ['kind']).inc({ kind: 'a' }, 2);
    metrics.histogram('wait_seconds', 'Waiting.', [], [0.1, 1]).observe({}, 0.5);
    const text = await metrics.text('openmetrics');
    assert.match(text, /^# HELP things Things \\"quoted\\"\.\n# TYPE things counter\nthings_total\{kind="a"\} 2$/m);
    assert.match(text, /^wait_seconds_bucket\{le="1\.0"\} 1$/m);
    assert.match(text, /^# TYPE process_cpu_seconds counter\nprocess_cpu_seconds_total /m);
    assert.match(text, /^# TYPE process_start_time_seconds gauge$/m);
    assert.ok(!text.includes('\n\n'));
    assert.ok(text.endsWith('\n# EOF\n'));
  });

  it('have an exemplar a bucket: the first value after a scrape that could read it', async () => {
    let now = 1_700_000_000_000;
    const metrics = createMetrics(() => now);
    const wait = metrics.histogram('wait_seconds', 'Waiting.', [], [0.1, 1]);
    wait.observe({}, 0.5, TRACE);
    now += 1500;
    wait.observe({}, 0.6, { id: 'later' });
    wait.observe({}, 7, { id: 'slow' });
    wait.observe({}, 0.05);
    const first = await metrics.text('openmetrics');
    assert.match(first, new RegExp(`^wait_seconds_bucket{le="1.0"} 3 # {trace_id="${TRACE.traceId}",x_request_id="${TRACE.id}"} 0.5 1700000000.000$`, 'm'));
    assert.match(first, /^wait_seconds_bucket\{le="\+Inf"\} 4 # \{x_request_id="slow"\} 7 1700000001\.500$/m);
    assert.match(first, /^wait_seconds_bucket\{le="0\.1"\} 1$/m);
    wait.observe({}, 0.7, { id: 'next' });
    await metrics.text();
    wait.observe({}, 0.8, { id: 'not this one' });
    assert.match(await metrics.text('openmetrics'), /^wait_seconds_bucket\{le="1\.0"\} 5 # \{x_request_id="next"\} 0\.7 /m);
    assert.ok(!(await metrics.text()).includes('x_request_id'));
  });

  it('are given to who asks for them', () => {
    const prometheus = 'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1';
    assert.equal(formatFor(prometheus), 'openmetrics');
    assert.equal(formatFor('text/plain;version=0.0.4;q=0.6, application/openmetrics-text;q=0.5'), 'text');
    for (const plain of [undefined, '', '*/*', 'text/html', 'application/openmetrics-text;q=0']) assert.equal(formatFor(plain), 'text');
  });
});

describe('a real Prometheus', skipWithout('prometheus'), () => {
  let app: BusyApp;
  let prometheus: PrometheusService;
  before(async () => {
    app = await startBusyApp();
    const target = JSON.stringify(app.base.slice('http://'.length));
    prometheus = await startPrometheus(
      `global: { scrape_interval: 300ms }\nscrape_configs:\n  - { job_name: hermes, static_configs: [ { targets: [ ${target} ] } ] }\n`,
      ['--enable-feature=exemplar-storage'],
    );
  });
  after(async () => {
    await prometheus?.stop();
    await app?.stop();
  });
  const exemplarsOf = async (metric: string): Promise<Record<string, string>[]> => {
    const response = await fetch(
      `${prometheus.url}/api/v1/query_exemplars?query=${metric}_bucket&start=${Date.now() / 1000 - 600}&end=${Date.now() / 1000 + 60}`,
    );
    const { data } = (await response.json()) as { data: { exemplars: { labels: Record<string, string> }[] }[] };
    return data.flatMap(({ exemplars }) => exemplars.map(({ labels }) => labels));
  };

  it('keeps exemplars of every histogram, each of which leads to its trace', async () => {
    const traceparent = `00-${TRACE.traceId}-b7ad6b7169203331-01`;
    await app.chat({ messages: [{ role: 'user', content: 'traced' }] }, { traceparent });
    await app.traffic(1);
    for (const metric of [
      'hermes_request_duration_seconds',
      'hermes_overhead_seconds',
      'hermes_time_to_first_token_seconds',
      'hermes_upstream_attempt_duration_seconds',
    ]) {
      await until(async () => (await exemplarsOf(metric)).length > 0, `${metric} has no exemplars`);
      for (const { x_request_id = '', trace_id } of await exemplarsOf(metric)) {
        const trace = await app.fetch(`/admin/traces/${x_request_id}`);
        assert.equal(trace.status, 200, `${metric}: ${x_request_id} leads nowhere`);
        if (trace_id !== undefined) assert.equal(trace.json.trace_id, trace_id);
      }
    }
    const traced = await exemplarsOf('hermes_request_duration_seconds');
    assert.ok(traced.some(({ trace_id }) => trace_id === TRACE.traceId));
  });

  it('is given plain text where it does not ask for more', async () => {
    const plain = await fetch(`${app.base}/metrics`, { headers: { authorization: `Bearer ${KEY}` } });
    assert.equal(plain.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
    assert.ok(!(await plain.text()).includes(' # {'));
    const open = await fetch(`${app.base}/metrics`, { headers: { accept: 'application/openmetrics-text' } });
    assert.equal(open.headers.get('content-type'), 'application/openmetrics-text; version=1.0.0; charset=utf-8');
    assert.match(await open.text(), / # \{(trace_id="[0-9a-f]{32}",)?x_request_id="[0-9a-f-]{36}"\} /);
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Reply } from '../app-kit.ts';
import { type BusyApp, startBusyApp } from './busy-app.ts';
import { allTraces, gapIn, idOf, metricSum, requestLines, type TraceJson } from './trace-kit.ts';

const LANES = 8;
const REQUESTS = 2000;

interface Books {
  total: { calls: number; failed_calls: number; input_tokens: number; output_tokens: number; cost_nano_usd: number };
}

describe('after 2,000 mixed requests', () => {
  let app: BusyApp;
  const answers: Reply[] = [];
  let traces: TraceJson[];
  let metrics: string;
  before(async () => {
    // The shadow makes calls of its own, which are nobody's request.
    app = await startBusyApp({ shadow: undefined });
    let round = 0;
    const lane = async (): Promise<void> => {
      while (answers.filter(({ status }) => status !== 401).length < REQUESTS) answers.push(...(await app.traffic(round++)));
    };
    await Promise.all(Array.from({ length: LANES }, lane));
    traces = await allTraces(app);
    metrics = (await app.fetch('/metrics')).text;
  });
  after(() => app.stop());

  const traced = (): Reply[] => answers.filter(({ status }) => status !== 401);
  const sumOf = (pick: (trace: TraceJson) => number): number => traces.reduce((sum, trace) => sum + pick(trace), 0);

  it('every one has its line and, of known callers, its trace, by its id', async () => {
    const lines = requestLines(app);
    assert.equal(lines.length, answers.length);
    assert.deepEqual(lines.map(({ x_request_id, request_id }) => String(x_request_id ?? request_id)).toSorted(), answers.map(idOf).toSorted());
    assert.deepEqual(traces.map(({ id }) => id).toSorted(), traced().map(idOf).toSorted());
    for (const reply of traced()) {
      const { status, json } = await app.fetch(`/admin/traces/${idOf(reply)}`);
      assert.equal(status, 200, `no trace of ${idOf(reply)}`);
      assert.equal(json.status, reply.status);
    }
  });

  it('the spans of each add up to its duration within a millisecond', () => {
    assert.ok(traces.length >= REQUESTS);
    assert.deepEqual(
      traces.map(gapIn).filter((gap) => gap !== undefined),
      [],
    );
  });

  it('answers, metrics, log and traces count the same, status by status', () => {
    const statuses = new Set(answers.map(({ status }) => status));
    assert.ok(statuses.size >= 5, `only ${[...statuses]}`);
    for (const status of statuses) {
      const count = answers.filter((answer) => answer.status === status).length;
      assert.equal(metricSum(metrics, 'hermes_requests_total', `status="${status}"`), count, `metrics of ${status}`);
      assert.equal(requestLines(app).filter((line) => line.status === status).length, count, `lines of ${status}`);
      if (status !== 401) assert.equal(traces.filter((trace) => trace.status === status).length, count, `traces of ${status}`);
    }
    assert.equal(metricSum(metrics, 'hermes_request_duration_seconds_count'), answers.length);
  });

  it('metrics, books, log and traces have the same calls, tokens and money', async () => {
    const { total } = (await app.fetch('/admin/costs?day=today&by=model')).json as object as Books;
    const calls = sumOf((trace) => trace.calls.length);
    assert.equal(metricSum(metrics, 'hermes_upstream_attempts_total'), calls);
    assert.equal(metricSum(metrics, 'hermes_upstream_attempt_duration_seconds_count'), calls);
    assert.equal(total.calls, calls);
    for (const direction of ['input', 'output'] as const) {
      const tokens = sumOf((trace) => trace.tokens[direction]);
      assert.ok(tokens > 0);
      assert.equal(metricSum(metrics, 'hermes_tokens_total', `direction="${direction}"`), tokens);
      assert.equal(total[`${direction}_tokens`], tokens);
      assert.equal(
        requestLines(app).reduce((sum, line) => sum + Number(line[`${direction}_tokens`] ?? 0), 0),
        tokens,
      );
    }
    const nano = Number(total.cost_nano_usd);
    assert.ok(nano > 0);
    const near = (usd: number, what: string): void => assert.ok(Math.abs(usd * 1e9 - nano) < 1, `${what}: ${usd} USD against ${nano} nano-dollars`);
    near(
      sumOf((trace) => trace.cost_usd),
      'traces',
    );
    near(metricSum(metrics, 'hermes_cost_usd_total'), 'metrics');
    near(
      requestLines(app).reduce((sum, line) => sum + Number(line.cost_usd ?? 0), 0),
      'log',
    );
  });

  it('failed and degraded ones, replays, tool calls and limits are counted where they were answered', () => {
    const with_ = (field: string): number => traces.filter((trace) => field in trace).length;
    assert.equal(metricSum(metrics, 'hermes_degraded_total'), with_('degraded'));
    assert.equal(Number(/^hermes_idempotent_replays_total (\d+)$/m.exec(metrics)?.[1]), with_('replayed'));
    assert.equal(metricSum(metrics, 'hermes_rate_limited_total'), answers.filter(({ status }) => status === 429).length);
    assert.equal(metricSum(metrics, 'hermes_auth_failures_total'), answers.length - traced().length);
    assert.equal(
      metricSum(metrics, 'hermes_tool_calls_total'),
      sumOf((trace) => trace.spans.filter(({ name }) => name.startsWith('tool ')).length),
    );
  });
});

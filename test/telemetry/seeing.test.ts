import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Reply, type RunningApp, startApp, user } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { type BusyApp, startBusyApp } from './busy-app.ts';
import { allTraces, gapIn, idOf, metricSum, requestLines, type SpanJson, type TraceJson, traceOf } from './trace-kit.ts';

/** SPEC, sections 10 and 12. */
const CONTRACT = {
  counter: [
    'requests',
    'tokens',
    'cost_usd',
    'route_hits',
    'upstream_attempts',
    'degraded',
    'session_reads',
    'trimmed_messages',
    'idempotent_replays',
    'tool_calls',
    'rate_limited',
    'shadow_comparisons',
    'config_reloads',
    'unpriced_calls',
    'embedding_failures',
  ].map((name) => `hermes_${name}_total`),
  histogram: ['hermes_request_duration_seconds', 'hermes_overhead_seconds', 'hermes_time_to_first_token_seconds'],
  gauge: ['hermes_upstream_state', 'hermes_requests_in_flight'],
};

describe('what a busy gateway tells of itself', () => {
  let app: BusyApp;
  let answers: Reply[];
  before(async () => {
    app = await startBusyApp();
    answers = [...(await app.traffic(1)), ...(await app.traffic(2))];
    await sleep(50);
  });
  after(() => app.stop());

  it('is one line for each request, with the decisive facts', () => {
    const lines = requestLines(app);
    for (const answer of answers) {
      const own = lines.filter((line) => (line.x_request_id ?? line.request_id) === idOf(answer));
      assert.equal(own.length, 1, `${idOf(answer)} has ${own.length} lines`);
      assert.equal(own[0]?.status, answer.status);
    }
    const tool = lines.find(({ tool_calls }) => (tool_calls as { tool: string }[] | undefined)?.[0]?.tool === 'order.query');
    assert.deepEqual(
      [tool?.route, tool?.model, tool?.upstream, tool?.attempts, typeof tool?.duration_ms, typeof tool?.cost_usd],
      ['order_query', 'fast_model', 'fast_model', 2, 'number', 'number'],
    );
    assert.ok(lines.some(({ degraded }) => degraded === true));
    assert.ok(lines.some(({ replayed, x_request_id }) => replayed === true && typeof x_request_id === 'string'));
  });

  it('has a trace for each request of a known caller, whose spans add up to its duration', async () => {
    for (const answer of answers.filter(({ status }) => status !== 401)) {
      const trace = await traceOf(app, answer);
      assert.equal(trace.id, idOf(answer));
      assert.equal(gapIn(trace), undefined);
      assert.equal((await app.fetch(`/admin/traces/${trace.trace_id}`)).json.id, trace.id, 'its trace id finds it, too');
    }
    const refused = answers.find(({ status }) => status === 401);
    assert.equal((await app.fetch(`/admin/traces/${refused && idOf(refused)}`)).status, 404);
  });

  it('shows attempts, tools and stores as spans', async () => {
    const traces = await allTraces(app);
    const spans = traces.flatMap((trace) => trace.spans);
    const named = (name: string): SpanJson[] => spans.filter((span) => span.name === name);
    for (const name of ['receive', 'auth', 'limits', 'session', 'route', 'trim', 'attempt', 'tool order.query', 'store read', 'store append'])
      assert.ok(named(name).length > 0, name);
    assert.ok(named('attempt').some(({ attributes }) => attributes.outcome === 'error' && attributes.upstream === 'broken'));
    assert.ok(named('attempt').some(({ attributes }) => attributes.outcome === 'ok' && Number(attributes.input_tokens) > 0 && Number(attributes.cost_usd) > 0));
    assert.ok(named('tool order.slow').some(({ attributes }) => attributes.status === 'timeout'));
    assert.ok(named('store read').some(({ attributes, parent }) => attributes.tier === 'hot' && parent === 'session'));
  });

  it('exports the same as NDJSON, filtered', async () => {
    const { text, headers } = await app.fetch('/admin/traces?format=ndjson&status=429');
    assert.match(headers.get('content-type') ?? '', /ndjson/);
    const exported = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as TraceJson);
    assert.equal(exported.length, answers.filter(({ status }) => status === 429).length);
    assert.ok(exported.every(({ status }) => status === 429));
  });

  it('shows nothing for a filter that it does not understand, but says so', async () => {
    for (const [name, value] of [
      ['limit', 'abc'],
      ['limit', '0'],
      ['status', 'bad'],
      ['from', 'yesterday'],
      ['to', '2026-13-01'],
      ['cursor', 'garbage'],
      ['format', 'yaml'],
    ]) {
      const { status, json } = await app.fetch(`/admin/traces?${name}=${value}`);
      assert.deepEqual([status, json.error?.param], [400, name]);
    }
  });

  it('pages lists that are at hand, which come whole without a limit', async () => {
    for (const id of ['one', 'two', 'three']) await app.post('/admin/keys', { id });
    for (const name of ['keys', 'upstreams', 'budgets', 'plugins', 'tools']) {
      const page = async (query: string) => (await app.fetch(`/admin/${name}${query}`)).json as { data: object[]; next_cursor: string | null };
      const whole = await page('');
      assert.equal(whole.next_cursor, null, name);
      const rows: object[] = [];
      let cursor: string | null = '';
      while (cursor !== null) {
        const { data, next_cursor }: Awaited<ReturnType<typeof page>> = await page(`?limit=2&cursor=${cursor}`);
        assert.ok(data.length <= 2, name);
        rows.push(...data);
        cursor = next_cursor;
      }
      assert.deepEqual(rows, whole.data, name);
      for (const [field, value] of [
        ['limit', 'abc'],
        ['cursor', 'garbage'],
        ['cursor', 'WyJ4Il0'],
      ]) {
        const { status, json } = await app.fetch(`/admin/${name}?${field}=${value}`);
        assert.deepEqual([status, json.error?.param], [400, field], name);
      }
    }
  });

  it('says which method an operator’s path wants', async () => {
    for (const [method, path, allow] of [
      ['GET', '/admin/reload', 'POST'],
      ['POST', '/admin/traces', 'GET'],
      ['POST', '/admin/sessions/s1', 'GET, DELETE'],
      ['GET', '/debug/route', 'POST'],
    ] as const) {
      const { status, headers } = await app.fetch(path, { method });
      assert.deepEqual([path, status, headers.get('allow')], [path, 405, allow]);
    }
    assert.equal((await app.fetch('/admin/nosuch')).status, 404);
  });

  it('names every metric of the contract', async () => {
    const text = (await app.fetch('/metrics')).text;
    for (const [type, names] of Object.entries(CONTRACT)) for (const name of names) assert.match(text, new RegExp(`^# TYPE ${name} ${type}$`, 'm'));
    const page = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8');
    for (const [, name = ''] of text.matchAll(/^# TYPE (hermes_\S+)/gm)) assert.ok(page.includes(`\`${name}\``), `docs/metrics.md does not tell of ${name}`);
    assert.ok(metricSum(text, 'hermes_degraded_total') > 0);
    assert.ok(metricSum(text, 'hermes_rate_limited_total') > 0);
    assert.ok(metricSum(text, 'hermes_session_reads_total', 'tier="hot"') > 0);
    assert.ok(metricSum(text, 'hermes_shadow_comparisons_total') > 0);
  });
});

describe('secrets and contents', () => {
  const MARK = {
    content: 'PLANTED-question-7c1',
    answer: 'PLANTED-answer-7c2',
    upstreamKey: 'sk-PLANTED-upstream-7c3',
    wrongKey: 'sk-PLANTED-wrong-7c4',
    tool: 'PLANTED-tool-7c5',
    cookie: 'PLANTED-cookie-7c6',
  };
  let upstream: FakeUpstream;
  before(async () => {
    upstream = await createFakeUpstream({ strict: false });
  });
  after(() => upstream.close());
  const start = (trace: object): Promise<RunningApp> =>
    startApp(
      {
        models: [
          { id: 'good', provider: 'openai', model_name: 'good', api_base: upstream.url, api_key_env: 'UP_KEY' },
          { id: 'bad', provider: 'openai', model_name: 'bad', api_base: upstream.url, api_key_env: 'UP_KEY' },
          { id: 'gone', provider: 'openai', model_name: 'gone', api_base: 'http://127.0.0.1:9/v1', api_key_env: 'UP_KEY' },
        ],
        default_model: 'good',
        trace,
      },
      { env: { UP_KEY: MARK.upstreamKey } },
    );
  const talk = async (app: RunningApp): Promise<Reply[]> => {
    upstream.on('good', (reply) => reply.completion({ content: MARK.answer }));
    upstream.on('bad', (reply) => reply.error(500, `no, not with ${MARK.upstreamKey} at ${upstream.url}`));
    const headers = { cookie: `session=${MARK.cookie}` };
    const messages = user(MARK.content);
    const tools = [{ type: 'function', function: { name: 'f', description: MARK.tool, parameters: {} } }];
    return [
      await app.chat({ messages, tools }, headers),
      await app.chat({ messages, stream: true, session_id: 's' }, headers),
      await app.chat({ messages, model: 'bad' }),
      await app.chat({ messages, model: 'gone' }),
      await app.chat({ messages }, { authorization: `Bearer ${MARK.wrongKey}` }),
      await app.post('/v1/chat/completions', `{"messages": ["${MARK.content}"`),
    ];
  };
  const outputs = async (app: RunningApp): Promise<Record<string, string>> => ({
    log: JSON.stringify(app.lines, (_key, value: unknown) => (value instanceof Error ? `${value.stack} ${String(value.cause)}` : value)),
    metrics: (await app.fetch('/metrics')).text,
    traces: (await app.fetch('/admin/traces?format=ndjson')).text,
    upstreams: (await app.fetch('/admin/upstreams')).text,
    plugins: (await app.fetch('/admin/plugins')).text,
    sessions: (await app.fetch('/admin/sessions')).text,
  });

  it('under capture_content the messages and the answer are with the trace, and nowhere else', async () => {
    const app = await start({ capture_content: true });
    try {
      const answers = await talk(app);
      for (const answer of answers.slice(0, 2)) {
        const { content } = await traceOf(app, answer);
        assert.equal(content?.answer, MARK.answer);
        assert.ok(JSON.stringify(content?.request).includes(MARK.content));
      }
      const { log, metrics, traces } = await outputs(app);
      assert.ok(!`${log}${metrics}`.includes(MARK.content) && !`${log}${metrics}`.includes(MARK.answer));
      assert.ok(!traces?.includes(MARK.upstreamKey));
    } finally {
      await app.stop();
    }
  });

  it('a caller that takes part in a W3C trace finds its trace id here and at the upstream', async () => {
    const app = await start({});
    try {
      upstream.on('good', (reply) => reply.completion({ content: 'x' }));
      const traceId = '0af7651916cd43dd8448eb211c80319c';
      const answer = await app.chat({ messages: user('traced') }, { traceparent: `00-${traceId}-b7ad6b7169203331-01`, tracestate: 'vendor=1' });
      const trace = await traceOf(app, answer);
      assert.equal(trace.trace_id, traceId);
      const found = await app.fetch(`/admin/traces/${traceId}`);
      assert.equal((found.json as { id: string }).id, trace.id);
      assert.equal((await app.fetch(`/admin/traces/${'1'.repeat(32)}`)).status, 404);
      const { headers } = upstream.find('traced') ?? {};
      assert.match(String(headers?.traceparent), new RegExp(`^00-${traceId}-(?!b7ad6b7169203331)[0-9a-f]{16}-01$`));
      assert.equal(headers?.tracestate, 'vendor=1');
      await app.chat({ messages: user('untraced') });
      assert.equal(upstream.find('untraced')?.headers.traceparent, undefined);
    } finally {
      await app.stop();
    }
  });
});

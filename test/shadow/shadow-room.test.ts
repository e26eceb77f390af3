import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Exchange, ModelCall } from '../../src/contracts/exchange.ts';
import type { Next } from '../../src/contracts/plugin.ts';
import { toAnswer } from '../../src/pipeline/answer.ts';
import { PipelineExchange } from '../../src/pipeline/exchange.ts';
import { createRoutingRoom } from '../../src/routing/routing-room.ts';
import { createShadowRoom } from '../../src/shadow/shadow-room.ts';
import { ExchangeTrace } from '../../src/telemetry/trace.ts';
import { toFunctionTool } from '../../src/tools/offer.ts';
import { batchOf, makeChunk } from '../../src/wire/batch.ts';
import { allows, config, matchers, model, recordingTelemetry, rule } from '../routing/fixture.ts';

const pricing = [{ input_per_million: 1, output_per_million: 1, bands: [] }];
const models = [model('m_z', { pricing }), model('live', { pricing }), model('rival', { pricing, maxTokens: 400 })];
const rules = [rule('live_order', { keywords: ['order'] }, { model: 'live', tools: ['order.query'] }), rule('live_rest', '.*', { model: 'live' })];
const candidates = [rule('rival_order', { keywords: ['order'] }, { model: 'rival', tools: ['order.query'] }), rule('rival_rest', '.*', { model: 'rival' })];
const tool = { id: 'order.query', description: 'Looks an order up', parameters: { type: 'object' } };

function coldStore() {
  const values = new Map<string, string>();
  return {
    values,
    getValue: async (key: string) => values.get(key),
    setValue: async (key: string, value: string) => values.set(key, value).size > 0,
    listValues: async (prefix: string, limit: number) =>
      [...values]
        .filter(([key]) => key.startsWith(prefix))
        .sort()
        .slice(0, limit)
        .map(([key, value]) => ({ key, value })),
  };
}

/** The inner steps: live answers LIVE, the candidate whatever the test says, at 600,000 nano-dollars a call. */
interface House {
  room: ReturnType<typeof createShadowRoom>;
  forks: Exchange[];
  seen: ReturnType<typeof recordingTelemetry>['seen'];
  /** One live request with its answer's text. */
  serve(text: string, more?: { stream?: boolean; model?: string }): Promise<string>;
  count(outcome: string): number;
  candidate: (fork: Exchange) => Promise<unknown> | unknown;
}
function house(settings: Record<string, unknown> = {}, cold = coldStore(), now = () => Date.UTC(2026, 10, 30, 12)): House {
  const { log, metrics, seen } = recordingTelemetry();
  let random = 0;
  const environment = { now, uuid: () => `id-${++random}`, random: () => (random++ % 10) / 10 };
  const routing = createRoutingRoom({ matchers, allows, environment, log, metrics });
  const shadow = { sample: 1, run_models: true, usd_per_day: 100, rules: candidates, ...settings };
  const generation = config(rules, { shadow, tools: [tool], trace: { capture_content: false } }, models);
  const room = createShadowRoom({
    cold,
    routing,
    functions: (from) => from.tools.map(toFunctionTool),
    redact: (_config, content) => content,
    log,
    metrics,
    environment,
  });
  const made: House = {
    room,
    seen,
    forks: [],
    candidate: () => undefined,
    count: (outcome) => seen.counts.get(`hermes_shadow_comparisons_total ${outcome}`) ?? 0,
    async serve(text, more = {}) {
      const exchange = begin(generation, text, more);
      exchange.route = await routing.compile(generation).decide(exchange);
      const inner = async (fork?: Exchange) => {
        const current = fork ?? exchange;
        if (fork) made.forks.push(fork);
        if (fork) await made.candidate(fork);
        current.addCall({ costNanoUsd: 600_000 } as ModelCall);
        const answer = toAnswer(more.stream ? { stream: streamOf(['LI', 'VE']) } : { body: completion(fork ? 'RIVAL' : 'LIVE') });
        current.answer = answer;
        return answer;
      };
      const observed = room.observe(exchange, inner as Next);
      const plain = await inner();
      const answer = observed ? observed.live(plain) : plain;
      let out = '';
      if (answer.stream)
        for (let batch = await answer.stream.read(); batch; batch = await answer.stream.read())
          for (const chunk of batch.chunks) out += chunk.view.choices[0]?.delta?.content ?? '';
      return answer.stream ? out : JSON.stringify(answer.view);
    },
  };
  return made;
}
const completion = (content: string) => ({
  id: 'c',
  object: 'chat.completion',
  created: 0,
  model: 'x',
  choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
});
function streamOf(parts: string[]) {
  const batches = parts.map((content) =>
    batchOf([makeChunk({ id: 'c', object: 'chat.completion.chunk', created: 0, model: 'x', choices: [{ index: 0, delta: { content } }] })]),
  );
  return { read: () => batches.shift() ?? null, cancel: () => undefined };
}
function begin(generation: ReturnType<typeof config>, text: string, more: { model?: string }): PipelineExchange {
  const request = { messages: [{ role: 'user' as const, content: text }], ...(more.model !== undefined && { model: more.model }) };
  const exchange = new PipelineExchange({
    id: 'request-1',
    config: generation,
    headers: {},
    ask: {},
    wants: { stream: false, form: 'openai-chat', verbose: false, usage: false, commit: undefined },
    inbound: { form: 'openai-chat', method: 'POST', path: '/', bytes: new Uint8Array(), request, remoteAddress: '' },
    trace: new ExchangeTrace('trace-1', 0, 0, undefined),
    deadline: Number.POSITIVE_INFINITY,
    progress: () => undefined,
  });
  exchange.caller = { service: 'shop', project: 'shop', user: undefined, userLevel: undefined, priority: 'normal' };
  return exchange;
}

describe('the shadow', () => {
  it('decides and answers in the background, and compares routes, answers, cost and latency', async () => {
    const h = house();
    assert.match(await h.serve('my order'), /LIVE/);
    await h.room.idle();
    assert.equal(h.count('answered'), 1);
    const report = await h.room.report({ limit: 10 });
    const [row] = report.routes;
    assert.deepEqual([row?.live_route, row?.candidate_route, row?.live_model, row?.candidate_model], ['live_order', 'rival_order', 'live', 'rival']);
    assert.deepEqual([row?.live_cost_nano_usd, row?.candidate_cost_nano_usd, row?.similarity, row?.live_length], [600_000, 600_000, 0, 4]);
    assert.match(row?.verdict ?? '', /rival instead of live, same cost, .*share 0 % of their words/);
    assert.deepEqual(
      report.examples.map(({ request_id, text }) => [request_id, text]),
      [['request-1', undefined]],
    );
    assert.equal(report.usd_today, 0.0006);
  });

  it('compares a stream that the client reads to its end, and hands it on whole', async () => {
    const h = house();
    assert.equal(await h.serve('my order', { stream: true }), 'LIVE');
    await h.room.idle();
    const report = await h.room.report({ limit: 10 });
    assert.deepEqual([report.routes[0]?.similarity, report.routes[0]?.candidate_length], [1, 4]);
  });

  it('gives the candidate its own background fork: detached, with tools to look at and none to run', async () => {
    const h = house();
    await h.serve('my order');
    await h.room.idle();
    const [fork] = h.forks;
    assert.equal(fork?.background, true);
    assert.deepEqual([fork?.route?.rule, fork?.route?.model, fork?.route?.tools], ['rival_order', 'rival', []]);
    assert.deepEqual(
      fork?.request.tools?.map((shown) => shown.function.name),
      ['order.query'],
    );
  });

  it('does not wait for a slow candidate', async () => {
    const h = house();
    let release: (() => void) | undefined;
    const asked = new Promise<void>((begun) => {
      h.candidate = () =>
        new Promise<void>((resolve) => {
          release = resolve;
          begun();
        });
    });
    assert.match(await h.serve('my order'), /LIVE/);
    assert.equal(h.count('answered'), 0);
    await asked;
    release?.();
    await h.room.idle();
    assert.equal(h.count('answered'), 1);
  });

  it('notes a failing candidate and one whose model the key may not use', async () => {
    const h = house();
    h.candidate = () => Promise.reject(new Error('down'));
    assert.match(await h.serve('my order'), /LIVE/);
    await h.room.idle();
    assert.equal(h.count('failed'), 1);
    const unknown = house({ rules: [rule('gone', '(?=x)')] });
    assert.match(await unknown.serve('my order'), /LIVE/);
    await unknown.room.idle();
    assert.equal(unknown.count('failed'), 1);
  });

  it('calls nobody without run_models', async () => {
    const h = house({ run_models: false });
    await h.serve('my order');
    await h.room.idle();
    assert.deepEqual([h.forks.length, h.count('decided')], [0, 1]);
  });

  it('takes its sample, and nothing that names its model', async () => {
    const h = house({ sample: 0.3, run_models: false });
    for (let index = 0; index < 20; index++) await h.serve('order');
    await h.room.idle();
    assert.ok(h.count('decided') > 0 && h.count('decided') < 20);
    const named = house();
    await named.serve('order', { model: 'live' });
    await named.room.idle();
    assert.equal(named.forks.length, 0);
  });

  it('stops at its money, also over a restart, and starts again the next day', async () => {
    const cold = coldStore();
    let day = 30;
    const now = () => Date.UTC(2026, 10, day, 12);
    const h = house({ usd_per_day: 0.001 }, cold, now);
    for (let index = 0; index < 5; index++) {
      await h.serve('my order');
      await h.room.idle();
    }
    assert.deepEqual([h.forks.length, h.count('over_budget')], [1, 4]);
    const restarted = house({ usd_per_day: 0.001 }, cold, now);
    await restarted.serve('my order');
    await restarted.room.idle();
    assert.equal(restarted.forks.length, 0);
    day = 31;
    await restarted.serve('my order');
    await restarted.room.idle();
    assert.equal(restarted.forks.length, 1);
  });

  it('holds its money for what is running: many at once do not pass the cap together', async () => {
    const h = house({ usd_per_day: 0.001 });
    let release = () => {};
    const gate = new Promise<void>((resolve) => (release = resolve));
    h.candidate = () => gate;
    await Promise.all(Array.from({ length: 6 }, () => h.serve('my order')));
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.ok(h.forks.length >= 1 && h.forks.length <= 2, `${h.forks.length} runs`);
    release();
    await h.room.idle();
  });

  it('refuses what finds the queue full', async () => {
    const h = house({ run_models: true });
    let release = () => {};
    const gate = new Promise<void>((resolve) => (release = resolve));
    h.candidate = () => gate;
    await Promise.all(Array.from({ length: 230 }, () => h.serve('my order')));
    assert.equal(h.count('dropped'), 230 - 208);
    release();
    await h.room.idle();
    assert.equal(h.count('answered'), 208);
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Usage } from '../../src/wire/chat.ts';
import { KEY, type RunningApp, startApp, user } from '../app-kit.ts';
import { type Behaviour, createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { startGateway } from '../process-kit.ts';

/** `BOOKS_CALLS=10000` for a longer run. */
const CALLS = Number(process.env.BOOKS_CALLS ?? 150);
const KB = 'sk-kb-0123456789abcdefghij';
interface Sums {
  calls: number;
  input: number;
  cached: number;
  output: number;
  reasoning: number;
}
const FIELDS = { calls: 'calls', input: 'input_tokens', cached: 'cached_tokens', output: 'output_tokens', reasoning: 'reasoning_tokens' } as const;

/** Its own books: what it has told its callers, by model. */
function keepBooks(upstream: FakeUpstream, model: string, failsEvery = 0): Sums & { failed: number } {
  const told = { calls: 0, input: 0, cached: 0, output: 0, reasoning: 0, failed: 0 };
  const behaviour: Behaviour = (reply, call) => {
    told.calls += 1;
    if (failsEvery > 0 && call.earlier % failsEvery === 0) {
      told.failed += 1;
      return reply.error(500);
    }
    const n = call.earlier + 1;
    const [cached, reasoning] = [n % 3 === 0 ? 7 * n : 0, n % 4 === 0 ? n : 0];
    const usage: Usage = {
      prompt_tokens: 11 * n + cached,
      completion_tokens: 3 * n + reasoning,
      total_tokens: 14 * n + cached + reasoning,
      prompt_tokens_details: { cached_tokens: cached },
      completion_tokens_details: { reasoning_tokens: reasoning },
    };
    told.input += usage.prompt_tokens;
    told.cached += cached;
    told.output += usage.completion_tokens;
    told.reasoning += reasoning;
    return reply.completion({ content: 'one two three' }, { usage });
  };
  upstream.on(model, behaviour);
  return told;
}

describe('the books against what the upstreams told', () => {
  let upstream: FakeUpstream;
  let app: RunningApp;
  let told: Record<string, Sums & { failed: number }>;
  before(async () => {
    upstream = await createFakeUpstream();
    told = { plain: keepBooks(upstream, 'plain'), flaky: keepBooks(upstream, 'flaky', 3), spare: keepBooks(upstream, 'spare') };
    upstream.on('slow', (reply) => reply.completion({ content: 'words '.repeat(50) }, { delayMs: 20 }));
    const shared = { provider: 'openai', api_base: upstream.url, api_key_env: 'UP_KEY' };
    const pricing = { input_per_million: 3, output_per_million: 15, cached_input_per_million: 0.3, reasoning_per_million: 20, per_request: 0.001 };
    app = await startApp(
      {
        models: [
          { id: 'plain', ...shared, model_name: 'plain', pricing },
          { id: 'flaky', ...shared, model_name: 'flaky', pricing },
          { id: 'spare', ...shared, model_name: 'spare', pricing: { ...pricing, input_per_million: 1 } },
          { id: 'slow', ...shared, model_name: 'slow', pricing },
          { id: 'pool', failover: { strategy: 'priority', failure_threshold: 1000, upstreams: [{ target: 'flaky' }, { target: 'spare' }] } },
        ],
        auth: { keys: [{ id: 'kb', key_env: 'KB_KEY', service: 'kb', projects: ['*'], project: 'kb' }] },
      },
      { env: { UP_KEY: 'sk-up', KB_KEY: KB } },
    );
    await traffic();
  });
  after(async () => {
    await app.stop();
    await upstream.close();
  });

  async function one(index: number): Promise<void> {
    const stream = index % 2 === 0;
    const body = {
      model: index % 5 === 0 ? 'pool' : 'plain',
      messages: user(`question ${index}`),
      user: `u${index % 7}`,
      stream,
      ...(index % 4 === 0 ? { session_id: `s${index % 11}` } : {}),
      ...(stream && index % 3 === 0 ? { stream_options: { include_usage: true } } : {}),
    };
    const reply = await app.chat(body, index % 6 === 0 ? { authorization: `Bearer ${KB}`, 'x-hermes-project': `p${index % 3}` } : {});
    assert.equal(reply.status, 200, reply.text);
  }
  async function traffic(): Promise<void> {
    let next = 0;
    const worker = async (): Promise<void> => {
      while (next < CALLS) await one(next++);
    };
    await Promise.all(Array.from({ length: 12 }, worker));
    // Some leave half-way: they are booked as estimates.
    await Promise.all(
      Array.from({ length: 10 }, async () => {
        const leave = new AbortController();
        const body = JSON.stringify({ model: 'slow', stream: true, messages: user('leave') });
        const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
        const response = await fetch(`${app.base}/v1/chat/completions`, { method: 'POST', headers, body, signal: leave.signal });
        await response.body?.getReader().read();
        leave.abort();
      }),
    );
    await sleep(200);
  }
  const report = async (by: string): Promise<{ rows: Record<string, number>[]; total: Record<string, number> }> =>
    (await app.fetch(`/admin/costs?by=${by}`)).json as unknown as { rows: Record<string, number>[]; total: Record<string, number> };

  it('agree to the token, by upstream', async () => {
    const { rows } = await report('upstream');
    for (const [name, theirs] of Object.entries(told)) {
      const ours = rows.find((row) => String(row.upstream) === name) ?? assert.fail(name);
      for (const field of Object.keys(FIELDS) as (keyof typeof FIELDS)[]) assert.equal(ours[FIELDS[field]], theirs[field], `${field} of ${name}`);
      assert.equal(ours.failed_calls, theirs.failed);
    }
    const left = rows.find((row) => String(row.upstream) === 'slow') ?? assert.fail('slow');
    assert.deepEqual([left.calls, left.estimated_calls, left.failed_calls], [10, 10, 0]);
    assert.ok((told.flaky?.failed ?? 0) > CALLS / 30, 'some failed over');
  });
  it('agree to the nano-dollar', async () => {
    const { rows } = await report('upstream');
    const cost = ({ input, cached, output, reasoning, calls, failed }: Sums & { failed: number }, perInput: number): number =>
      (input - cached) * perInput * 1000 + cached * 300 + (output - reasoning) * 15_000 + reasoning * 20_000 + (calls - failed) * 1_000_000;
    const ours = (name: string): number | undefined => rows.find((row) => String(row.upstream) === name)?.cost_nano_usd;
    assert.equal(ours('plain'), cost(told.plain ?? assert.fail(), 3));
    assert.equal(ours('flaky'), cost(told.flaky ?? assert.fail(), 3));
    assert.equal(ours('spare'), cost(told.spare ?? assert.fail(), 1));
  });
  it('add up to the same by every grouping, and as CSV', async () => {
    const { total } = await report('service');
    const groups = ['hour', 'day', 'project', 'service', 'user', 'session', 'key', 'route', 'model', 'upstream', 'service,user,model', 'hour,project,session'];
    for (const by of groups) {
      const { rows, total: again } = await report(by);
      assert.deepEqual(again, total, by);
      for (const field of [...Object.values(FIELDS), 'cost_nano_usd']) {
        assert.equal(
          rows.reduce((sum, row) => sum + (row[field] ?? Number.NaN), 0),
          total[field],
          `${field} by ${by}`,
        );
      }
      const csv = (await app.fetch(`/admin/costs?by=${by}&format=csv`)).text.trim().split('\r\n');
      const column = csv[0]?.split(',').indexOf('cost_nano_usd') ?? -1;
      assert.equal(
        csv.slice(1).reduce((sum, line) => sum + Number(line.split(',')[column]), 0),
        total.cost_nano_usd,
        `CSV by ${by}`,
      );
    }
  });
});

describe('the books and the end of a process', () => {
  it('lose nothing by SIGTERM, and nothing older than a batch by kill -9', async () => {
    const gateway = await startGateway({ models: [{ id: 'fast_model', provider: 'simulator', pricing: { input_per_million: 1, output_per_million: 1 } }] });
    const calls = async (): Promise<number> => {
      const response = await fetch(`${gateway.base}/admin/costs`, { headers: { authorization: `Bearer ${KEY}` } });
      return ((await response.json()) as { total: { calls: number } }).total.calls;
    };
    const ask = async (count: number): Promise<void> => {
      await Promise.all(Array.from({ length: count }, () => gateway.post({ messages: user('hello') }).then((response) => response.text())));
    };
    await ask(20);
    await gateway.stop();
    await gateway.start();
    assert.equal(await calls(), 20);
    await ask(20);
    await sleep(1500);
    await gateway.kill();
    await gateway.start();
    assert.equal(await calls(), 40);
    await gateway.stop();
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { KEY, type RunningApp, startApp, user } from '../app-kit.ts';

const priced = { input_per_million: 1000, output_per_million: 2000 };

describe('GET /admin/costs', () => {
  let app: RunningApp;
  before(async () => {
    app = await startApp(
      {
        models: [
          { id: 'fast_model', provider: 'simulator', pricing: priced },
          { id: 'other', provider: 'simulator' },
        ],
        auth: { keys: [{ id: 'kb', key_env: 'KB_KEY', service: 'kb', project: 'shop' }] },
      },
      { env: { KB_KEY: 'sk-kb-0123456789abcdefghij' } },
    );
  });
  after(() => app.stop());
  const costs = async (query: string): Promise<Record<string, unknown>> => {
    const { status, json, text } = await app.fetch(`/admin/costs?${query}`);
    assert.equal(status, 200, text);
    return json;
  };

  it('knows of every call as soon as its answer is there, to the token and the nano-dollar', async () => {
    let input = 0;
    let output = 0;
    for (const stream of [false, true, false]) {
      const { json, text } = await app.chat({
        model: 'fast_model',
        messages: user('hello'),
        stream,
        stream_options: stream ? { include_usage: true } : undefined,
      });
      const usage = stream ? (/"usage":(\{[^}]*\})/.exec(text)?.[1] ?? assert.fail(text)) : JSON.stringify(json.usage);
      const { prompt_tokens, completion_tokens } = JSON.parse(`${usage.replace(/\}*$/, '')}}`) as { prompt_tokens: number; completion_tokens: number };
      input += prompt_tokens;
      output += completion_tokens;
    }
    await app.chat({ model: 'other', messages: user('hello') }, { authorization: 'Bearer sk-kb-0123456789abcdefghij' });
    const { rows, total } = (await costs('by=service,model')) as { rows: Record<string, unknown>[]; total: Record<string, unknown> };
    assert.deepEqual(
      rows.map(({ service, model, calls }) => [service, model, calls]),
      [
        ['default', 'fast_model', 3],
        ['kb', 'other', 1],
      ],
    );
    assert.deepEqual([rows[0]?.input_tokens, rows[0]?.output_tokens, rows[0]?.cost_nano_usd], [input, output, (input + 2 * output) * 1e6]);
    assert.equal(total.cost_nano_usd, rows[0]?.cost_nano_usd, 'what has no price costs nothing that could be counted');
    assert.match(await fetch(`${app.base}/metrics`).then((reply) => reply.text()), /hermes_unpriced_calls_total\{model="other"\} 1/);
  });
  it('gives CSV', async () => {
    const reply = await app.fetch('/admin/costs?format=csv&by=key');
    assert.match(reply.headers.get('content-type') ?? '', /^text\/csv/);
    assert.match(reply.text, /^key,calls,.*\r\napi-key|^key,calls/);
  });
  it('tells what is wrong with a question', async () => {
    for (const query of ['day=junk', 'by=junk', 'format=xml', 'top=-1', 'from=2026-01-01&to=2025-01-01']) {
      const { status, json } = await app.fetch(`/admin/costs?${query}`);
      assert.equal(status, 400, query);
      assert.equal(json.error?.code, 'invalid_value');
    }
  });
  it('is for admins', async () => {
    assert.equal((await app.fetch('/admin/costs', { headers: { authorization: 'Bearer sk-kb-0123456789abcdefghij' } })).status, 403);
    assert.equal((await app.fetch('/admin/costs', { headers: { authorization: `Bearer ${KEY}` } })).status, 200);
  });
});

describe('cost.unpriced: refuse', () => {
  it('refuses a model without a price before it is called, and goes to a priced upstream where there is one', async () => {
    const app = await startApp({
      models: [
        { id: 'fast_model', provider: 'simulator', pricing: priced },
        { id: 'unknown', provider: 'simulator' },
        { id: 'pool', failover: { strategy: 'priority', upstreams: [{ target: 'unknown' }, { target: 'fast_model' }] } },
      ],
      cost: { unpriced: 'refuse' },
    });
    const refused = await app.chat({ model: 'unknown', messages: user('hello') });
    assert.deepEqual([refused.status, refused.json.error?.code], [500, 'model_unpriced']);
    const served = await app.chat({ model: 'pool', messages: user('hello') });
    assert.deepEqual([served.status, served.headers.get('x-hermes-upstream')], [200, 'fast_model']);
    const { json } = await app.fetch('/admin/costs?by=model');
    assert.equal((json.total as { calls: number }).calls, 1, 'what was not called is not booked');
    await app.stop();
  });
});

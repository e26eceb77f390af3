import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { type RunningApp, startApp } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';

const price = (input: number, output = input) => ({ input_per_million: input, output_per_million: output });
const embeddings = (usage: object | undefined, model = 'text-embedding-3-small', padding = 0) =>
  JSON.stringify({ object: 'list', data: [{ index: 0, embedding: Array.from({ length: padding }, () => 0.125) }], model, usage });

/** By path, what the vendor answers. */
const ANSWERS: Record<string, (response: ServerResponse) => unknown> = {
  '/v1/embeddings': (response) =>
    response.setHeader('content-type', 'application/json').end(embeddings({ prompt_tokens: 8, total_tokens: 8 }, undefined, 50_000)),
  // Compresses for whoever takes it, as vendors do.
  '/v1/embeddings/polite': (response) => {
    const text = embeddings({ prompt_tokens: 3, total_tokens: 3 }, 'polite');
    const zips = /gzip/.test(String(response.req.headers['accept-encoding']));
    response.writeHead(200, { 'content-type': 'application/json', ...(zips ? { 'content-encoding': 'gzip' } : {}) }).end(zips ? gzipSync(text) : text);
  },
  '/v1/embeddings/zipped': (response) =>
    response
      .writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
      .end(gzipSync(embeddings({ prompt_tokens: 8, total_tokens: 8 }))),
  '/v1/embeddings/unknown': (response) =>
    response.setHeader('content-type', 'application/json').end(embeddings({ prompt_tokens: 8, total_tokens: 8 }, 'another')),
  '/v1/embeddings/refused': (response) => response.writeHead(429, { 'content-type': 'application/json' }).end('{"error":{"message":"slow down"}}'),
  '/v1/completions': (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('data: {"model":"davinci-2026-01-31","choices":[{"text":"的"}],"usage":null}\n\n');
    response.end(
      'data: {"model":"davinci-2026-01-31","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12,"prompt_tokens_details":{"cached_tokens":2}}}\n\ndata: [DONE]\n\n',
    );
  },
  '/v1/responses/compact': (response) =>
    response
      .setHeader('content-type', 'application/json')
      .end(
        '{"model":"davinci","usage":{"input_tokens":4,"input_tokens_details":{"cached_tokens":1},"output_tokens":6,"output_tokens_details":{"reasoning_tokens":2}}}',
      ),
  '/v1/audio/speech': (response) => response.setHeader('content-type', 'audio/mpeg').end(Buffer.alloc(100, 0xff)),
  '/v1/files': (response) => response.setHeader('content-type', 'application/json').end('{"id":"file-1"}'),
};

describe('what is passed through, in the books', () => {
  let upstream: FakeUpstream;
  let app: RunningApp;
  before(async () => {
    const routes = async (request: IncomingMessage, response: ServerResponse): Promise<boolean> => {
      request.resume();
      ANSWERS[request.url ?? '']?.(response);
      return request.url !== undefined && request.url in ANSWERS;
    };
    upstream = await createFakeUpstream({ routes });
    const vendor = { provider: 'openai', api_base: upstream.url, api_key_env: 'UP_KEY' };
    app = await startApp(
      {
        models: [
          { id: 'vendor', ...vendor, model_name: 'm', pricing: price(99) },
          { id: 'embedder', ...vendor, model_name: 'text-embedding-3-small', pricing: price(2) },
          { id: 'completer', ...vendor, model_name: 'davinci', pricing: { ...price(1, 10), cached_input_per_million: 0 } },
        ],
        passthrough: { upstream: 'vendor' },
        limits: [{ per: 'service', tokens_per_minute: 1_000_000 }],
      },
      { env: { UP_KEY: 'sk-up' } },
    );
  });
  after(async () => {
    await app.stop();
    await upstream.close();
  });
  const costs = async (): Promise<Record<string, unknown[]>> => {
    const { json } = await app.fetch('/admin/costs?by=model');
    const rows = json.rows as Record<string, unknown>[];
    return Object.fromEntries(
      rows.map(({ model, calls, failed_calls, input_tokens, cached_tokens, output_tokens, reasoning_tokens, cost_nano_usd }) => [
        String(model),
        [calls, failed_calls, input_tokens, cached_tokens, output_tokens, reasoning_tokens, cost_nano_usd],
      ]),
    );
  };

  it('is priced by the model that the answer names, whole or streamed, and relayed as it is', async () => {
    const reply = await app.post('/v1/embeddings', { model: 'text-embedding-3-small', input: 'x' });
    assert.equal(reply.text, embeddings({ prompt_tokens: 8, total_tokens: 8 }, undefined, 50_000));
    const stream = await app.post('/v1/completions', { model: 'davinci', prompt: 'x', stream: true });
    assert.ok(stream.text.includes('的') && stream.text.endsWith('data: [DONE]\n\n'));
    await app.post('/v1/responses/compact', { model: 'davinci', input: 'x' });
    assert.deepEqual(await costs(), {
      embedder: [1, 0, 8, 0, 0, 0, 16_000],
      completer: [2, 0, 9, 3, 13, 2, 136_000],
    });
  });
  it('is counted without tokens where they cannot be read, and without a price where nobody knows one', async () => {
    for (const path of ['/v1/embeddings/zipped', '/v1/embeddings/unknown', '/v1/embeddings/refused', '/v1/audio/speech']) await app.post(path, {});
    assert.deepEqual((await costs()).passthrough, [4, 1, 8, 0, 0, 0, 0]);
    assert.match(await fetch(`${app.base}/metrics`).then((answer) => answer.text()), /hermes_unpriced_calls_total\{model="passthrough"\} 4/);
  });
  it('is counted for a client that would take it compressed', async () => {
    const [, , before] = (await costs()).passthrough as number[];
    await app.post('/v1/embeddings/polite', {}, { 'accept-encoding': 'gzip, deflate, br' });
    assert.equal((await costs()).passthrough?.[2], Number(before) + 3);
  });
  it('is no model call where nothing is generated', async () => {
    const before = await costs();
    await app.post('/v1/files', {});
    await app.fetch('/v1/embeddings');
    assert.deepEqual(await costs(), before);
  });
});

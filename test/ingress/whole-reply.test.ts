import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { type RunningApp, startApp, user } from '../app-kit.ts';

const START = '{ "id" : "c1","object":"chat.completion",\n "created":1.0e3, "model":"m", "seed":9007199254740993';
const CHOICES = '"choices":[ {"index":0, "message":{"role":"assistant","content":"\\u5317京"},"finish_reason":"stop"} ]';
const SAID: Record<string, string> = {
  plain: `${START},${CHOICES} }\n`,
  another: `${START},"hermes":{"request_id":"theirs"},${CHOICES}}`,
};

describe('a whole answer', () => {
  const upstream = createServer((request, response) => {
    let body = '';
    request.on('data', (piece) => {
      body += piece;
    });
    request.on('end', () => response.setHeader('content-type', 'application/json').end(SAID[(JSON.parse(body) as { model: string }).model]));
  });
  let app: RunningApp;
  before(async () => {
    await new Promise<void>((listening) => upstream.listen(0, '127.0.0.1', listening));
    const at = { provider: 'openai', api_base: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`, api_key_env: 'UP' };
    app = await startApp({ models: Object.keys(SAID).map((id) => ({ ...at, id, model_name: id })), default_model: 'plain' }, { env: { UP: 'sk-up' } });
  });
  after(async () => {
    await app.stop();
    upstream.close();
  });

  it('is relayed as it came, and what is asked for besides stands behind it', async () => {
    const plain = await app.chat({ model: 'plain', messages: user('hi') });
    assert.equal(plain.text, SAID.plain);
    const verbose = await app.chat({ model: 'plain', messages: user('hi') }, { 'x-hermes-verbose': '1' });
    assert.ok(verbose.text.startsWith(`${START},${CHOICES} ,"hermes":{"request_id":`), verbose.text);
    assert.equal((verbose.json.hermes as { upstream?: string }).upstream, 'plain');
    assert.equal(Number(verbose.headers.get('content-length')), Buffer.byteLength(verbose.text));
  });

  it('has no name twice where the upstream is such a gateway itself: ours stands in its place', async () => {
    const { text, json } = await app.chat({ model: 'another', messages: user('hi') }, { 'x-hermes-verbose': '1' });
    assert.equal(text.split('"hermes"').length, 2);
    assert.notEqual((json.hermes as { request_id?: string }).request_id, 'theirs');
    assert.match(text, /"seed":9007199254740993/);
  });
});

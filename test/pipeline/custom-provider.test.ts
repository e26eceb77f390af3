import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { type RunningApp, saidIn, startApp, user } from '../app-kit.ts';

const PAGE = readFileSync(new URL('../../docs/custom-provider.md', import.meta.url), 'utf8');
const FILE = /```js file=acme\.mjs\n([\s\S]*?)```/.exec(PAGE)?.[1] ?? '';
const SECRET = 'acme-secret-9c1f';

/** The vendor: refuses what is not signed for this moment. */
function createVendor(received: { headers: IncomingHttpHeaders; body: Record<string, unknown> }[]): Server {
  return createServer(async (request, response) => {
    let text = '';
    for await (const part of request) text += String(part);
    const date = String(request.headers['x-acme-date']);
    const sign = createHmac('sha256', SECRET).update(`${date}\n${text}`).digest('hex');
    if (Math.abs(Date.parse(date) - Date.now()) > 60_000 || request.headers['x-acme-sign'] !== sign) {
      response.writeHead(401).end('bad signature');
      return;
    }
    const body = JSON.parse(text) as { flow: boolean; dialogue: { says: string }[] };
    received.push({ headers: request.headers, body: { ...body } });
    const reply = `you said: ${body.dialogue.at(-1)?.says}`;
    if (!body.flow) {
      response.end(JSON.stringify({ reply, why: 'done', spent: { in: 7, out: 3 } }));
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const piece of reply.match(/.{1,5}/gs) ?? []) response.write(`data: ${JSON.stringify({ piece })}\n\n`);
    response.end(`data: ${JSON.stringify({ end: 'done', spent: { in: 7, out: 3 } })}\n\n`);
  });
}

describe('the custom provider of docs/custom-provider.md', () => {
  const received: { headers: IncomingHttpHeaders; body: Record<string, unknown> }[] = [];
  const vendor = createVendor(received);
  let running: RunningApp;
  const config = (port: number) => ({
    providers: { acme: { type: 'acme', api_base: `http://127.0.0.1:${port}`, api_key_env: 'ACME_KEY' } },
    models: [{ id: 'acme_model', provider: 'acme', model_name: 'acme-large', max_tokens: 512 }],
  });
  before(async () => {
    vendor.listen(0, '127.0.0.1');
    await once(vendor, 'listening');
    running = await startApp(config((vendor.address() as AddressInfo).port), { env: { ACME_KEY: SECRET }, files: { 'acme.mjs': FILE } });
  });
  after(async () => {
    await running.stop();
    vendor.close();
  });

  it('answers in JSON, with usage and what was dropped', async () => {
    const reply = await running.chat({ messages: user('hello'), temperature: 0.3 }, { 'x-hermes-verbose': '1' });
    assert.equal(reply.status, 200, reply.text);
    assert.equal(saidIn(reply), 'you said: hello');
    const { tokens, dropped_params } = reply.json.hermes as { tokens: Record<string, unknown>; dropped_params: string[] };
    assert.deepEqual([tokens.input, tokens.output, tokens.estimated, dropped_params], [7, 3, false, ['temperature']]);
  });

  it('answers in a stream', async () => {
    const reply = await running.chat({ messages: user('hello there'), stream: true });
    assert.equal(saidIn(reply), 'you said: hello there');
    assert.ok(reply.text.endsWith('data: [DONE]\n\n'));
  });

  it('gets the history of a session in its own words', async () => {
    for (const text of ['first', 'second']) await running.chat({ session_id: 's', messages: user(text) });
    assert.deepEqual(received.at(-1)?.body.dialogue, [
      { who: 'guest', says: 'first' },
      { who: 'host', says: 'you said: first' },
      { who: 'guest', says: 'second' },
    ]);
  });

  it('refuses what the vendor cannot do, naming the field', async () => {
    const reply = await running.chat({ messages: user('x'), tools: [{ type: 'function', function: { name: 'f' } }] });
    assert.deepEqual([reply.status, reply.json.error?.param], [400, 'tools']);
  });

  it('is missed at the start when no plugin adds it', async () => {
    await assert.rejects(startApp(config(1)), /acme/);
    await assert.rejects(
      startApp(config(1), { files: { 'other.mjs': "export default { name: 'other' };" } }),
      /hermes\.yaml:1:\d+ providers\.acme\.type: `acme` is not a provider type; known: anthropic, openai, simulator/,
    );
  });
});

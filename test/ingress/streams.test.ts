import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { events, KEY, type RunningApp, saidIn, startApp, user } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { head, openSocket } from './raw-socket.ts';

describe('streams at the edge', () => {
  let app: RunningApp;
  let quiet: RunningApp;
  let upstream: FakeUpstream;
  const config = (heartbeat_ms: number): object => ({
    server: { heartbeat_ms },
    models: [{ id: 'm', provider: 'openai', model_name: 'm', api_base: upstream.url, api_key_env: 'UP_KEY' }],
  });
  before(async () => {
    upstream = await createFakeUpstream();
    app = await startApp(config(60), { env: { UP_KEY: 'sk-up' } });
    quiet = await startApp(config(0), { env: { UP_KEY: 'sk-up' } });
  });
  after(async () => {
    await app.stop();
    await quiet.stop();
    await upstream.close();
  });
  beforeEach(() => upstream.on('m', (reply) => reply.completion({ content: 'plain' })));
  const stream = { messages: user('hi'), stream: true };

  it('are kept alive by comments that stand between whole events only', async () => {
    upstream.on('m', async (reply) => {
      reply.open();
      const text =
        'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"slowly"},"finish_reason":null}]}\n\n';
      for (const part of text.match(/[\s\S]{1,40}/g) ?? []) {
        reply.response.write(part);
        await sleep(70);
      }
      await sleep(200);
      await reply.stream(['stop']);
    });
    const reply = await app.chat(stream);
    const blocks = reply.text.split('\n\n').filter((block) => block !== '');
    for (const block of blocks) assert.match(block, /^(: .*|data: (\{.*\}|\[DONE\]))$/);
    assert.ok(blocks.filter((block) => block.startsWith(':')).length >= 2, reply.text);
    assert.equal(saidIn({ ...reply, text: `data:\n\n${reply.text}` }), 'slowly');
    assert.doesNotMatch(reply.text, /^id:/m);
  });
  it('can do without heartbeats', async () => {
    upstream.on('m', async (reply) => {
      await sleep(250);
      await reply.completion({ content: 'late' });
    });
    const reply = await quiet.chat(stream);
    assert.doesNotMatch(reply.text, /^:/m);
    assert.equal(saidIn(reply), 'late');
  });
  it('begun by a heartbeat end in one error event when the model fails, without the terminal marker', async () => {
    upstream.on('m', async (reply) => {
      await sleep(200);
      reply.error(400, 'no such parameter', { type: 'invalid_request_error' });
    });
    const reply = await app.chat(stream);
    assert.equal(reply.status, 200);
    const list = events(reply);
    assert.equal(list.length, 1);
    assert.ok((list[0] as { error: { message: string } }).error.message);
    assert.doesNotMatch(reply.text, /\[DONE\]/);
  });
  it('that the client leaves are stopped upstream at once: before the first token, and after', async () => {
    for (const early of [true, false]) {
      upstream.on('m', async (reply) => {
        reply.open();
        if (!early)
          reply.bytes(
            'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"one"},"finish_reason":null}]}\n\n',
          );
        reply.stall();
      });
      const count = upstream.calls.length;
      const raw = await openSocket(quiet.app.port);
      const body = JSON.stringify(stream);
      raw.send(head([`Content-Length: ${body.length}`]) + body);
      await upstream.until(() => upstream.calls.length > count);
      if (!early) await raw.until((text) => text.includes('one'));
      raw.socket.destroy();
      await upstream.until(() => upstream.calls.at(-1)?.aborted === true);
      await upstream.until(() => quiet.lines.some(({ status, error }) => status === 499 && error === 'client_closed'));
    }
  });
  it('that nobody waits for any more as whole answers are stopped, too', async () => {
    upstream.on('m', (reply) => reply.stall());
    const count = upstream.calls.length;
    const controller = new AbortController();
    const asked = fetch(`${quiet.base}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({ messages: user('whole') }),
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      signal: controller.signal,
    });
    asked.catch(() => undefined);
    await upstream.until(() => upstream.calls.length > count);
    controller.abort();
    await upstream.until(() => upstream.calls.at(-1)?.aborted === true);
  });
  it('carry fresh ids for every exchange, and the name that the caller gave', async () => {
    const [first, second] = [
      await quiet.chat(stream, { 'x-request-id': 'theirs' }),
      await quiet.chat(stream, { 'x-request-id': 'theirs', 'idempotency-key': 'order-7' }),
    ];
    const ids = [first.headers.get('x-request-id'), second.headers.get('x-request-id')];
    assert.equal(new Set([...ids, 'theirs']).size, 3);
    assert.equal(first.headers.get('x-hermes-request-id'), ids[0]);
    assert.equal(second.headers.get('x-hermes-request-id'), 'order-7');
    assert.deepEqual([first.headers.get('content-type'), first.headers.get('x-accel-buffering')], ['text/event-stream; charset=utf-8', 'no']);
  });
});

describe('a gateway that serves as many as it may', () => {
  it('refuses the next at once, tells when to come back, and serves again', async () => {
    const upstream = await createFakeUpstream();
    const app = await startApp(
      { server: { max_in_flight: 2 }, models: [{ id: 'm', provider: 'openai', model_name: 'm', api_base: upstream.url, api_key_env: 'UP_KEY' }] },
      { env: { UP_KEY: 'sk-up' } },
    );
    let release = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    upstream.on('m', async (reply) => {
      await gate;
      await reply.completion({ content: 'served' });
    });
    const inside = [app.chat({ messages: user('1') }), app.chat({ messages: user('2'), stream: true })];
    await upstream.until(() => upstream.calls.length === 2);
    const refused = await app.chat({ messages: user('3') });
    assert.deepEqual(
      [refused.status, refused.json.error?.code, refused.headers.get('retry-after'), refused.headers.get('x-should-retry')],
      [503, 'overloaded', '1', null],
    );
    const anthropic = await app.post('/v1/messages', { model: 'm', max_tokens: 5, messages: user('4') }, { 'x-api-key': KEY });
    assert.deepEqual([anthropic.status, anthropic.json.type], [503, 'error']);
    assert.equal((await app.fetch('/healthz')).status, 200);
    assert.equal((await app.fetch('/v1/models')).status, 200);
    assert.match((await app.fetch('/metrics')).text, /^hermes_requests_in_flight 2$/m);
    release();
    for (const reply of await Promise.all(inside)) assert.equal(reply.status, 200);
    assert.equal((await app.chat({ messages: user('5') })).status, 200);
    await app.stop();
    await upstream.close();
  });
});

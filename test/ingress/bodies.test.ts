import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { KEY, type Reply, type RunningApp, startApp, user } from '../app-kit.ts';
import { exchange, head, hexSize, openSocket } from './raw-socket.ts';

describe('a request body', () => {
  let app: RunningApp;
  before(async () => {
    app = await startApp({ server: { body_limit: '64kb', max_depth: 20 } });
  });
  after(() => app.stop());

  const send = async (body: Uint8Array, encoding?: string): Promise<Reply> =>
    app.fetch('/v1/chat/completions', {
      method: 'POST',
      body: Buffer.from(body),
      headers: { 'content-type': 'application/json', ...(encoding ? { 'content-encoding': encoding } : {}) },
    });
  const chat = JSON.stringify({ messages: user('packed') });

  it('may come packed by gzip, deflate or brotli', async () => {
    for (const [encoding, body] of [
      ['gzip', gzipSync(chat)],
      ['GZIP ', gzipSync(chat)],
      ['deflate', deflateSync(chat)],
      ['br', brotliCompressSync(chat)],
      ['identity', Buffer.from(chat)],
    ] as const)
      assert.equal((await send(body, encoding)).status, 200, encoding);
  });
  it('in another packing is 415, one that is broken 400', async () => {
    assert.equal((await send(gzipSync(chat), 'zstd')).status, 415);
    assert.equal((await send(gzipSync(chat), 'gzip, gzip')).status, 415);
    assert.equal((await send(Buffer.from(chat), 'gzip')).status, 400);
    assert.equal((await send(gzipSync(chat).subarray(0, 20), 'gzip')).status, 400);
  });
  it("that is refused is answered under the caller's request id, where a header states it", async () => {
    for (const [id, authorization, wanted] of [
      ['mine', `Bearer ${KEY}`, 'mine'],
      ['mine', 'Bearer wrong', 'mine'],
      ['x'.repeat(300), `Bearer ${KEY}`, undefined],
    ] as const) {
      const { status, headers } = await app.fetch('/v1/chat/completions', {
        method: 'POST',
        body: '{"messages":',
        headers: { authorization, 'x-hermes-request-id': id },
      });
      assert.ok(status === 400 || status === 401);
      assert.equal(headers.get('x-hermes-request-id'), wanted ?? headers.get('x-request-id'));
    }
  });
  it('that cannot be used is answered under the name that it gives itself, and a name of spaces is none', async () => {
    const unread = await app.chat({ request_id: 'mine' });
    assert.deepEqual([unread.status, unread.headers.get('x-hermes-request-id')], [400, 'mine']);
    for (const id of ['', '  ']) {
      const { status, headers, json } = await app.chat({ request_id: id, messages: user('x') });
      assert.deepEqual([status, json.error?.param, headers.get('x-hermes-request-id')], [400, 'request_id', headers.get('x-request-id')]);
    }
  });
  it('that is refused has its trace under a good key, and none under a wrong one', async () => {
    const form = { '/v1/chat/completions': 'openai-chat', '/v1/messages': 'anthropic-messages', '/v1/responses': 'openai-responses' };
    for (const [path, body, status, error] of [
      ['/v1/chat/completions', '{"messages":', 400, 'invalid_json'],
      ['/v1/chat/completions', '{"request_id":"mine"}', 400, 'invalid_request'],
      ['/v1/chat/completions', JSON.stringify({ messages: user('x'), timeout: 'abc' }), 400, 'invalid_value'],
      ['/v1/messages', '[', 400, 'invalid_json'],
      ['/v1/responses', `"${'x'.repeat(70_000)}"`, 413, 'request_too_large'],
    ] as const) {
      const reply = await app.post(path, body, { 'x-request-id': 'theirs' });
      assert.equal(reply.status, status, reply.text);
      const id = reply.headers.get('x-request-id');
      const trace = await app.fetch(`/admin/traces/${id}`);
      const { json } = trace;
      assert.deepEqual(
        [json.status, json.service, json.key, json.error, json.path, json.form, json.caller_request_id],
        [status, 'default', 'API_KEY', error, path, form[path], 'theirs'],
      );
      const line = app.lines.find(({ message, request_id, x_request_id }) => message === 'request' && (x_request_id ?? request_id) === id);
      assert.deepEqual([line?.key, line?.service, line?.error, line?.request_id], ['API_KEY', 'default', error, reply.headers.get('x-hermes-request-id')]);
    }
    const wrong = await app.post('/v1/chat/completions', '{', { authorization: 'Bearer wrong' });
    assert.equal(wrong.status, 401);
    assert.equal((await app.fetch(`/admin/traces/${wrong.headers.get('x-request-id')}`)).status, 404);
  });
  it('is measured unpacked: a bomb is 413', async () => {
    const bomb = gzipSync(Buffer.alloc(20_000_000, 97));
    assert.ok(bomb.length < 64 * 1024);
    assert.equal((await send(bomb, 'gzip')).status, 413);
  });
  it('beyond body_limit is 413 before it has arrived, whatever its framing', async () => {
    const declared = await exchange(app.app.port, head(['Content-Length: 10000000']));
    assert.deepEqual(declared.statuses(), [413]);
    const piece = 'a'.repeat(40_000);
    const chunk = `${hexSize(piece)}\r\n${piece}\r\n`;
    const chunked = await exchange(app.app.port, head(['Transfer-Encoding: chunked']) + chunk + chunk + chunk);
    assert.deepEqual(chunked.statuses(), [413]);
    assert.match(chunked.text, /request_too_large/);
    assert.ok(chunked.closed, 'the connection is not used again');
  });
  it('nested deeper than max_depth is 400, and text that only looks nested is not', async () => {
    const nested = (depth: number): string => `{"messages":[{"role":"user","content":"x"}],"metadata":${'['.repeat(depth)}${']'.repeat(depth)}}`;
    assert.equal((await app.chat(nested(19) as never)).status, 200);
    assert.match((await app.chat(nested(20) as never)).text, /more than 20 levels/);
    assert.equal((await app.chat({ messages: user('['.repeat(500)) })).status, 200);
    assert.equal((await app.post('/v1/chat/completions', '['.repeat(60_000))).status, 400);
  });
  it('that is no JSON object says where it breaks, in OpenAI shape', async () => {
    for (const body of ['', '{"messages":', 'null', '[]', '7', '"x"', '\u0000', '{"messages":[{"role":"user","content":"x"}]} trailing']) {
      const reply = await app.post('/v1/chat/completions', body);
      assert.equal(reply.status, 400, body);
      assert.equal(reply.json.error?.type, 'invalid_request_error');
    }
  });
  it('announced by Expect: 100-continue is waited for', async () => {
    const raw = await openSocket(app.app.port);
    raw.send(head(['Expect: 100-continue', `Content-Length: ${chat.length}`, 'Connection: close']));
    await raw.until((text) => text.startsWith('HTTP/1.1 100'));
    raw.send(chat);
    await raw.until((text) => text.includes('chat.completion'));
    raw.socket.destroy();
  });
  it('that stops half-way, with the client gone, leaves nothing behind', async () => {
    const raw = await openSocket(app.app.port);
    raw.send(`${head(['Content-Length: 5000'])}{"messages":`);
    raw.socket.destroy();
    assert.equal((await app.chat({ messages: user('still here') })).status, 200);
  });
  it('is not read for a wrong key', async () => {
    const raw = await exchange(app.app.port, head(['Content-Length: 60000']).replace(KEY, 'sk-wrong'));
    assert.deepEqual(raw.statuses(), [401]);
  });
});

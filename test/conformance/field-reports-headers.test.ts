import assert from 'node:assert/strict';
import http from 'node:http';
import net from 'node:net';
import { after, before, describe, test } from 'node:test';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { KEY, type RunningApp, startApp, user } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { createRaw, type Raw } from './field-kit.ts';

/** What belongs to the caller and to nobody else. */
const CALLERS = {
  authorization: `Bearer ${KEY}`,
  'x-api-key': KEY,
  'api-key': 'sk-callers-azure',
  cookie: 'session=callers-cookie',
  'openai-organization': 'org-callers',
  'openai-project': 'proj-callers',
  'x-forwarded-for': '10.1.2.3',
  'x-real-ip': '10.1.2.3',
  forwarded: 'for=10.1.2.3',
  'proxy-authorization': 'Basic callers',
  'x-hermes-user-level': 'vip',
};
const SECRETS = /sk-test|callers|10\.1\.2\.3|x-hermes|x-forwarded/i;

let raw: Raw;
let strict: FakeUpstream;
let app: RunningApp;
before(async () => {
  raw = await createRaw();
  strict = await createFakeUpstream();
  const body = {
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  };
  raw.answers.set('keyless', (response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body)));
  const message = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'c',
    content: [{ type: 'text', text: 'Hi' }],
    stop_reason: 'end_turn',
    usage: { input_tokens: 1, output_tokens: 1 },
  };
  raw.answers.set('keyless_claude', (response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(message)));
  app = await startApp(
    {
      models: [
        { id: 'keyless', provider: 'local', model_name: 'keyless' },
        { id: 'keyless_claude', provider: 'anthropic', model_name: 'keyless_claude', api_base: raw.url, api_key_env: 'NO_KEY' },
        { id: 'strict', provider: 'openai', model_name: 'strict', api_base: strict.url, api_key_env: 'UP_KEY' },
      ],
      providers: { local: { type: 'openai', api_base: `${raw.url}/v1` } },
      passthrough: { upstream: 'local' },
    },
    { env: { UP_KEY: 'sk-up' } },
  );
});
after(async () => {
  await app.stop();
  await Promise.all([raw.close(), strict.close()]);
});

/** Beneath what fetch allows. */
function send(
  path: string,
  headers: http.OutgoingHttpHeaders,
  body: string | Buffer = '',
  method = 'POST',
): Promise<{ status: number; text: string; headers: http.IncomingHttpHeaders }> {
  return new Promise((resolve, reject) => {
    const request = http.request(`${app.base}${path}`, { method, headers }, async (response) => {
      let text = '';
      for await (const part of response) text += part;
      resolve({ status: response.statusCode ?? 0, text, headers: response.headers });
    });
    request.on('error', reject).end(body);
  });
}

describe("field report 39: the caller's credentials pass in no branch", () => {
  const chat = (model: string, stream = false) => JSON.stringify({ model, stream, max_tokens: 10, messages: user('hi') });
  for (const [what, path, body] of [
    ['chat', '/v1/chat/completions', chat('keyless')],
    ['chat, streamed', '/v1/chat/completions', chat('keyless', true)],
    ['the Anthropic door', '/v1/messages', chat('keyless')],
    ['the Responses door', '/v1/responses', JSON.stringify({ model: 'keyless', input: 'hi', store: false })],
    ['passed through', '/v1/embeddings', '{"model":"e","input":"hi"}'],
    ['passed through, a form', '/v1/audio/transcriptions', 'x'],
  ] as const)
    test(what, async () => {
      const before = raw.requests.length;
      const { status, text } = await send(path, { ...CALLERS, 'content-type': 'application/json' }, body);
      assert.equal(status, 200, text);
      const [request] = raw.requests.slice(before);
      assert.ok(request);
      assert.doesNotMatch(JSON.stringify(request.headers), SECRETS);
      assert.equal(request.headers.authorization, undefined);
    });

  test('an upstream whose key is missing is not called at all', async () => {
    const before = raw.requests.length;
    const { status, text } = await send(
      '/v1/chat/completions',
      { ...CALLERS, 'content-type': 'application/json' },
      JSON.stringify({ model: 'keyless_claude', messages: user('hi') }),
    );
    assert.deepEqual([status, JSON.parse(text).error.code, raw.requests.length], [500, 'upstream_key_missing', before]);
  });
});

describe('field report 41: bodies that were rewritten', () => {
  const own = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ model: 'strict', session_id: 'lengths', user_level: 'vip', messages: user('长度 🎉') });

  test('have lengths of their own, and hop-by-hop headers do not pass', async () => {
    const { status } = await send(
      '/v1/chat/completions',
      { ...own, connection: 'keep-alive, x-mine', 'x-mine': '1', te: 'trailers', 'keep-alive': 'timeout=5' },
      body,
    );
    assert.equal(status, 200);
    const call = strict.calls.at(-1);
    assert.equal(Number(call?.headers['content-length']), Buffer.byteLength(call?.raw ?? ''));
    assert.deepEqual([call?.headers['x-mine'], call?.headers.te, call?.headers['keep-alive']], [undefined, undefined, undefined]);
  });

  test('passed through, headers that Connection names are dropped in both directions', async () => {
    const { status } = await send(
      '/v1/embeddings',
      { ...own, connection: 'keep-alive, x-mine', 'x-mine': '1', 'x-other': '2', te: 'trailers' },
      '{"model":"e","input":"hi"}',
    );
    assert.equal(status, 200);
    const { headers } = raw.requests.at(-1) ?? {};
    assert.deepEqual([headers?.['x-mine'], headers?.['x-other'], headers?.te], [undefined, '2', undefined]);
  });

  test('chunked bodies and those that wait for 100-continue are taken', async () => {
    const chunked = await send('/v1/chat/completions', { ...own, 'transfer-encoding': 'chunked' }, body);
    assert.equal(chunked.status, 200);
    const socket = net.connect(app.app.port, '127.0.0.1');
    const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\nconnection: close\r\nexpect: 100-continue\r\nauthorization: Bearer ${KEY}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n`;
    let said = '';
    socket.write(head);
    for await (const part of socket) {
      if (said === '') socket.write(body);
      said += part;
    }
    assert.match(said, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /);
  });

  test('compressed ones are read or refused as 415, never passed on as they are', async () => {
    const gzip = await send('/v1/chat/completions', { ...own, 'content-encoding': 'gzip' }, gzipSync(body));
    assert.ok(gzip.status === 200 || gzip.status === 415, String(gzip.status));
    if (gzip.status === 200) assert.equal(strict.calls.at(-1)?.headers['content-encoding'], undefined);
    const unknown = await send('/v1/chat/completions', { ...own, 'content-encoding': 'zstd-9' }, brotliCompressSync(body));
    assert.equal(unknown.status, 415);
    assert.equal(strict.violations.length, 0);
  });
});

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { KEY, type RunningApp, startApp, user } from '../app-kit.ts';

/** One raw request; what came back until the connection closed. */
async function raw(port: number, text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  let said = '';
  socket.on('data', (data) => {
    said += String(data);
  });
  socket.on('error', () => undefined);
  socket.write(text);
  const timer = setTimeout(() => socket.destroy(), 5000);
  await once(socket, 'close');
  clearTimeout(timer);
  return said;
}

describe('websockets that ask for nonsense', () => {
  let running: RunningApp;
  before(async () => {
    running = await startApp({});
  });
  after(() => running.stop());
  const upgrade = (headers: string): string =>
    `GET /v1/realtime HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${headers}\r\n`;

  it('are refused with a status, and the process serves on', async () => {
    for (const [header, status] of [
      ['x-hermes-timeout: soon\r\n', 400],
      ['x-hermes-priority: never\r\n', 400],
      [`x-hermes-request-id: ${'x'.repeat(300)}\r\n`, 400],
      ['', 401],
      [`authorization: Bearer ${KEY}\r\n`, 404],
    ] as const) {
      assert.match(await raw(running.app.port, upgrade(header)), new RegExp(`^HTTP/1\\.1 ${status} `), header);
    }
    assert.equal((await running.chat({ messages: user('still there?') })).status, 200);
  });
});

describe('a key that may use some models', () => {
  let running: RunningApp;
  before(async () => {
    running = await startApp(
      {
        auth: { keys: [{ id: 'tight', key_env: 'TIGHT', service: 'tight', models: ['fast_model'] }] },
        providers: { vendor: { type: 'openai', api_base: 'http://127.0.0.1:9/v1', api_key_env: 'VENDOR' } },
        passthrough: { upstream: 'vendor' },
      },
      { env: { TIGHT: 'sk-tight-7c1f0d9be2a4', VENDOR: 'sk-vendor' } },
    );
  });
  after(() => running.stop());
  const pass = (path: string, body: string, type: string) =>
    running.fetch(path, { method: 'POST', body, headers: { authorization: 'Bearer sk-tight-7c1f0d9be2a4', 'content-type': type } });

  it('is held to them whatever the content type says, and in forms too', async () => {
    for (const type of ['application/json', 'application/JSON', 'text/plain']) {
      const reply = await pass('/v1/embeddings', '{"model":"text-embedding-3-large","input":"x"}', type);
      assert.deepEqual([reply.status, reply.json.error?.code], [403, 'model_not_allowed'], type);
    }
    const form =
      '--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nwhisper-1\r\n--b\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\nx\r\n--b--\r\n';
    const reply = await pass('/v1/audio/transcriptions', form, 'multipart/form-data; boundary=b');
    assert.deepEqual([reply.status, reply.json.error?.code], [403, 'model_not_allowed']);
  });
});

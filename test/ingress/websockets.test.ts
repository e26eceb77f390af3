import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import { KEY, type RunningApp, startApp, user } from '../app-kit.ts';
import { openSocket, type RawSocket } from './raw-socket.ts';

const ACCEPT_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

describe('websockets', () => {
  let app: RunningApp;
  let server: http.Server;
  const offers: http.IncomingHttpHeaders[] = [];
  const open = new Set<Duplex>();
  before(async () => {
    server = http.createServer((_request, response) => response.writeHead(426).end());
    server.on('upgrade', (request, socket, head) => {
      offers.push({ ...request.headers, ':path': request.url ?? '' });
      open.add(socket);
      socket.on('close', () => open.delete(socket)).on('error', () => undefined);
      const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}${ACCEPT_GUID}`).digest('base64');
      const protocol = request.headers['sec-websocket-protocol'];
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n${protocol ? `Sec-WebSocket-Protocol: ${protocol.split(',')[0]}\r\n` : ''}\r\n`,
      );
      if (head.length > 0) socket.write(head);
      // An echo: frames are bytes to the gateway.
      socket.pipe(socket);
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const { port } = server.address() as AddressInfo;
    app = await startApp(
      { providers: { up: { type: 'openai', api_base: `http://127.0.0.1:${port}/v1`, api_key_env: 'UP_KEY' } }, passthrough: { upstream: 'up' } },
      { env: { UP_KEY: 'sk-upstream-secret' } },
    );
  });
  after(async () => {
    for (const socket of open) socket.destroy();
    await app.stop();
    server.closeAllConnections();
    server.close();
  });

  const knock = async (path: string, headers: readonly string[], port = app.app.port): Promise<RawSocket> => {
    const raw = await openSocket(port);
    raw.send(
      `${[`GET ${path} HTTP/1.1`, 'Host: hermes', 'Upgrade: websocket', 'Connection: keep-alive, Upgrade', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', ...headers].join('\r\n')}\r\n\r\n`,
    );
    await raw.until((text) => text.includes('\r\n\r\n'));
    return raw;
  };

  it('that no upstream answers are refused in words', async () => {
    const nobody = await startApp(
      { providers: { up: { type: 'openai', api_base: 'http://127.0.0.1:1/v1', api_key_env: 'UP_KEY' } }, passthrough: { upstream: 'up' } },
      { env: { UP_KEY: 'sk-upstream-secret' } },
    );
    const raw = await knock('/v1/realtime', [`Authorization: Bearer ${KEY}`], nobody.app.port);
    await raw.until((text) => text.includes('}}'));
    assert.deepEqual(raw.statuses(), [502]);
    await nobody.stop();
  });

  it("are relayed both ways, with the upstream's credential for the caller's", async () => {
    const raw = await knock('/v1/realtime?model=gpt-realtime', [
      `Authorization: Bearer ${KEY}`,
      'Cookie: a=b',
      'OpenAI-Beta: realtime=v1',
      'OpenAI-Organization: org-callers',
    ]);
    assert.deepEqual(raw.statuses(), [101]);
    assert.match(raw.text, /sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=/i);
    const offer = offers.at(-1);
    assert.deepEqual(
      [offer?.authorization, offer?.['openai-beta'], offer?.cookie, offer?.['openai-organization'], offer?.[':path']],
      ['Bearer sk-upstream-secret', 'realtime=v1', undefined, undefined, '/v1/realtime?model=gpt-realtime'],
    );
    raw.send('frame one, ');
    raw.send('frame two');
    await raw.until((text) => text.endsWith('frame one, frame two'));
    raw.socket.destroy();
    const booked = async (): Promise<unknown> => (await app.fetch('/admin/costs?by=model')).json.rows;
    for (const end = performance.now() + 3000; ; await new Promise((done) => setTimeout(done, 20))) {
      const [row] = (await booked()) as { model: string; calls: number; failed_calls: number }[];
      if (row !== undefined) {
        assert.deepEqual([row.model, row.calls, row.failed_calls], ['passthrough', 1, 0]);
        break;
      }
      assert.ok(performance.now() < end, 'it is in no book');
    }
    for (const end = performance.now() + 3000; open.size > 0; await new Promise((done) => setTimeout(done, 5)))
      assert.ok(performance.now() < end, 'the upstream side stays open');
  });
  it('of browsers bring their key in the subprotocol, which goes no further', async () => {
    const raw = await knock('/v1/realtime', [`Sec-WebSocket-Protocol: realtime, openai-insecure-api-key.${KEY}, openai-beta.realtime-v1`]);
    assert.deepEqual(raw.statuses(), [101]);
    assert.equal(offers.at(-1)?.['sec-websocket-protocol'], 'realtime, openai-beta.realtime-v1');
    raw.socket.destroy();
  });
  it('without a good key, or where there are none, are refused in plain HTTP', async () => {
    const count = offers.length;
    assert.deepEqual((await knock('/v1/realtime', [])).statuses(), [401]);
    assert.deepEqual((await knock('/v1/realtime', ['Sec-WebSocket-Protocol: openai-insecure-api-key.sk-wrong'])).statuses(), [401]);
    for (const path of ['/admin/upstreams', '/v1/chat/completions', '/v1//models', '/v1/x/../responses', '/elsewhere', '/v1/../v1/chat'])
      assert.deepEqual((await knock(path, [`Authorization: Bearer ${KEY}`])).statuses(), [404], path);
    assert.deepEqual((await knock('/v1/realtime%2f..%2ffiles', [`Authorization: Bearer ${KEY}`])).statuses(), [400]);
    assert.deepEqual((await knock('/v1/organization/x', [`Authorization: Bearer ${KEY}`])).statuses(), [403]);
    assert.equal(offers.length, count);
  });
  it('bear both ids, whether they are taken or refused, and a limit tells when to come again', async () => {
    const key = `Authorization: Bearer ${KEY}`;
    const id = /^x-request-id: [0-9a-f-]{36}\r$/m;
    for (const [path, headers, status] of [
      ['/v1/realtime', [key, 'X-Hermes-Request-Id: mine'], 101],
      ['/v1/organization/x', [key, 'X-Hermes-Request-Id: mine'], 403],
      ['/v1/realtime', ['X-Hermes-Request-Id: mine'], 401],
      ['/v1/realtime', [key, 'X-Hermes-Request-Id: mine', 'X-Hermes-Timeout: soon'], 400],
    ] as const) {
      const raw = await knock(path, headers);
      assert.deepEqual(raw.statuses(), [status]);
      assert.match(raw.text, id);
      assert.match(raw.text, /^x-hermes-request-id: mine\r$/m);
      raw.socket.destroy();
    }
    const limited = await startApp(
      {
        providers: { up: { type: 'openai', api_base: 'http://127.0.0.1:1/v1', api_key_env: 'UP_KEY' } },
        passthrough: { upstream: 'up' },
        limits: [{ per: 'key', requests_per_minute: 1 }],
      },
      { env: { UP_KEY: 'sk-upstream-secret' } },
    );
    await knock('/v1/realtime', [key], limited.app.port);
    const raw = await knock('/v1/realtime', [key], limited.app.port);
    assert.deepEqual(raw.statuses(), [429]);
    const names = [...raw.text.matchAll(/^([a-z-]+): /gm)].map(([, name]) => name);
    for (const name of ['x-request-id', 'x-hermes-request-id', 'x-hermes-limit', 'retry-after', 'retry-after-ms', 'x-ratelimit-limit-requests'])
      assert.ok(names.includes(name), `${name} in ${names.join(' ')}`);
    await limited.stop();
  });
  it('are not what an offer of HTTP/2 is: it is served in HTTP/1.1, and so is what follows', async () => {
    const body = JSON.stringify({ messages: user('a Java client') });
    const raw = await openSocket(app.app.port);
    raw.send(
      `POST /v1/chat/completions HTTP/1.1\r\nHost: hermes\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\nAuthorization: Bearer ${KEY}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 7)}`,
    );
    raw.send(body.slice(7));
    await raw.until((text) => text.includes('chat.completion'));
    raw.send('GET /healthz HTTP/1.1\r\nHost: hermes\r\nConnection: close\r\n\r\n');
    await raw.until((text) => text.endsWith('{"status":"ok"}'));
    assert.deepEqual(raw.statuses(), [200, 200]);
  });
});

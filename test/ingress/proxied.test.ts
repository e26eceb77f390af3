import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { KEY } from '../app-kit.ts';
import { type ConnectProxy, startConnectProxy } from '../connect-proxy.ts';
import { type Gateway, startGateway } from '../process-kit.ts';
import { temporaryFolder, until } from '../services.ts';
import { type HttpMcp, startHttpMcp } from '../tools/mcp-fixture.ts';
import { openSocket } from './raw-socket.ts';

const openssl = ['/usr/bin/openssl', '/usr/local/bin/openssl'].find((file) => existsSync(file));
const AUTHORIZED = { authorization: `Bearer ${KEY}` };

describe("the environment's proxy and certificate authorities", { skip: openssl === undefined && 'openssl not found' }, () => {
  let vendor: https.Server;
  let mcp: HttpMcp;
  let proxy: ConnectProxy;
  let gateway: Gateway;
  const received: string[] = [];
  const toVendor = (): number => proxy.tunnels.filter((name) => name === 'vendor.test:443').length;
  before(async () => {
    const folder = temporaryFolder();
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
    const names = 'subjectAltName=DNS:vendor.test';
    execFileSync(
      openssl as string,
      ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert, '-days', '1', '-subj', '/CN=vendor.test', '-addext', names],
      { stdio: 'ignore' },
    );
    vendor = https.createServer({ key: readFileSync(key), cert: readFileSync(cert) }, async (request, response) => {
      let bytes = 0;
      for await (const piece of request) bytes += (piece as Buffer).length;
      received.push(`${request.method} ${request.url} ${bytes} ${request.headers.host} ${request.headers.authorization}`);
      response.setHeader('content-type', 'application/json').end('{"object":"list","data":[]}');
    });
    vendor.on('upgrade', (request, socket) => {
      const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
      socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`);
      socket.on('error', () => undefined).pipe(socket);
    });
    await new Promise<void>((done) => vendor.listen(0, '127.0.0.1', done));
    mcp = await startHttpMcp();
    proxy = await startConnectProxy((host) => (host === 'tools.test' ? Number(new URL(mcp.url).port) : (vendor.address() as AddressInfo).port));
    gateway = await startGateway(
      {
        models: [{ id: 'fast_model', provider: 'simulator' }],
        providers: { up: { type: 'openai', api_base: 'https://vendor.test/v1', api_key_env: 'UP_KEY' } },
        passthrough: { upstream: 'up' },
        tools: [{ id: 'files', mcp: { url: 'http://tools.test/mcp' } }],
        trace: { otlp_endpoint: 'https://vendor.test:4318' },
      },
      { UP_KEY: 'sk-upstream-secret', HTTP_PROXY: proxy.url, HTTPS_PROXY: proxy.url, NODE_EXTRA_CA_CERTS: cert },
    );
  });
  after(async () => {
    await gateway.stop();
    await Promise.all([proxy.close(), mcp.close()]);
    vendor.closeAllConnections();
    vendor.close();
  });

  it('hold for what is passed through', async () => {
    const listed = await fetch(`${gateway.base}/v1/embeddings`, { method: 'POST', headers: AUTHORIZED, body: Buffer.alloc(3_000_000, 'x') });
    assert.deepEqual([listed.status, await listed.json()], [200, { object: 'list', data: [] }]);
    assert.equal(received.at(-1), 'POST /v1/embeddings 3000000 vendor.test Bearer sk-upstream-secret');
    assert.equal(toVendor(), 1);
    assert.equal((await fetch(`${gateway.base}/v1/audio/voices`, { headers: AUTHORIZED })).status, 200);
    assert.equal(toVendor(), 1, 'the tunnel is used again');
  });

  it('hold for websockets', async () => {
    const raw = await openSocket(Number(new URL(gateway.base).port));
    raw.send(
      `${['GET /v1/realtime HTTP/1.1', 'Host: hermes', 'Upgrade: websocket', 'Connection: Upgrade', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', `Authorization: Bearer ${KEY}`].join('\r\n')}\r\n\r\n`,
    );
    await raw.until((text) => text.includes('\r\n\r\n'));
    assert.deepEqual(raw.statuses(), [101]);
    raw.send('a frame');
    await raw.until((text) => text.endsWith('a frame'));
    raw.socket.destroy();
    assert.equal(toVendor(), 2);
  });

  it('hold for MCP servers that are reached over HTTP', async () => {
    await until(() => proxy.tunnels.includes('tools.test:80'), 'no tunnel to the MCP server');
    await until(async () => {
      const response = await fetch(`${gateway.base}/admin/tools`, { headers: AUTHORIZED });
      return (await response.text()).includes('files.read');
    }, 'the tools are not known');
  });

  it('hold for the trace collector', async () => {
    const body = JSON.stringify({ messages: [{ role: 'user', content: 'hi' }] });
    assert.equal((await fetch(`${gateway.base}/v1/chat/completions`, { method: 'POST', headers: AUTHORIZED, body })).status, 200);
    await until(() => received.some((line) => /^POST \/v1\/traces \d+ vendor\.test:4318 /.test(line)), 'no trace came');
    assert.ok(proxy.tunnels.includes('vendor.test:4318'));
  });

  it('do not hold where NO_PROXY says so', async () => {
    const direct = await startGateway(
      {
        models: [{ id: 'fast_model', provider: 'simulator' }],
        providers: { up: { type: 'openai', api_base: `http://127.0.0.1:${new URL(mcp.url).port}/v1`, api_key_env: 'UP_KEY' } },
        passthrough: { upstream: 'up' },
      },
      { UP_KEY: 'sk-upstream-secret', HTTP_PROXY: proxy.url, NO_PROXY: '127.0.0.1' },
    );
    const tunnels = proxy.tunnels.length;
    assert.equal((await fetch(`${direct.base}/v1/audio/voices`, { headers: AUTHORIZED })).status, 404);
    assert.equal(mcp.seen.at(-1)?.authorization, 'Bearer sk-upstream-secret');
    assert.equal(proxy.tunnels.length, tunnels);
    await direct.stop();
  });
});

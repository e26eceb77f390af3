import assert from 'node:assert/strict';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { HermesError } from '../../src/contracts/errors.ts';
import type { UpstreamCall } from '../../src/contracts/provider.ts';
import { createClient } from '../../src/upstream/client.ts';

let server: http.Server;
let base = '';
let sent = 0;
let connections = 0;
const client = createClient();
before(async () => {
  server = http.createServer((request, response) => {
    request.resume();
    if (request.url === '/flood') {
      const piece = Buffer.alloc(64 * 1024, 'x');
      const more = (): void => {
        while (sent < 200 * 1024 * 1024 && !response.destroyed) {
          sent += piece.length;
          if (!response.write(piece)) return void response.once('drain', more);
        }
        response.end();
      };
      more();
    } else if (request.url === '/many') {
      response.writeHead(200);
      for (let i = 0; i < 50; i++) response.write(`event ${i};`);
      response.end();
    } else response.end('ok');
  });
  server.on('connection', () => connections++);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(async () => {
  await client.close();
  server.closeAllConnections();
  server.close();
});

const call = (path: string): UpstreamCall => ({
  method: 'POST',
  url: base + path,
  headers: {},
  body: '{}',
  stream: false,
  droppedParams: [],
  context: undefined,
});
const soon = (): number => performance.now() + 30_000;

test('who does not read holds the upstream up, and everything arrives in the end', async () => {
  const open = client.open(call('/flood'));
  await open.head(soon());
  // Kernel buffers hold some megabytes; ours hold 64 KB and one read of the socket.
  let held = -1;
  for (; held !== sent; await sleep(200)) held = sent;
  assert.ok(held < 60 * 1024 * 1024, `${held} bytes were sent to nobody`);
  let got = 0;
  let largest = 0;
  for (let piece = await open.read(soon()); piece !== null; piece = await open.read(soon())) {
    got += piece.length;
    largest = Math.max(largest, piece.length);
  }
  assert.equal(got, 200 * 1024 * 1024);
  assert.ok(largest < 1024 * 1024, `${largest} bytes were queued`);
});
test('what one read of the socket brought comes as one piece', async () => {
  const open = client.open(call('/many'));
  await open.head(soon());
  await sleep(300);
  const pieces: Buffer[] = [];
  for (let piece = await open.read(soon()); piece !== null; piece = await open.read(soon())) pieces.push(piece);
  assert.equal(Buffer.concat(pieces).toString().split(';').length, 51);
  assert.ok(pieces.length <= 3, `${pieces.length} pieces`);
});
test('a connection is used again', async () => {
  const read = async (): Promise<void> => {
    const open = client.open(call('/'));
    await open.head(soon());
    while ((await open.read(soon())) !== null);
  };
  await read();
  const before_ = connections;
  for (let i = 0; i < 5; i++) await read();
  assert.equal(connections, before_);
});
test('an abort before the connection stands rejects at once, and no request goes out', async () => {
  const open = client.open(call('/'));
  const reason = new HermesError('client_closed', 'gone');
  const head = open.head(soon());
  open.abort(reason);
  await assert.rejects(head, reason);
});
test('an address that is none rejects, too', async () => {
  const open = client.open({ ...call('/'), url: 'not an address' });
  await assert.rejects(open.head(soon()), { code: 'upstream_error' });
  const bad = client.open({ ...call('/'), headers: { 'x-bad': 'a\nb' } });
  await assert.rejects(bad.head(soon()), { code: 'upstream_error' });
});
test('a proxy is used for what NO_PROXY does not name', async () => {
  const seen: string[] = [];
  const proxy = http.createServer((request, response) => {
    seen.push(String(request.url));
    response.end('by proxy');
  });
  proxy.on('connect', (request, socket) => {
    seen.push(`CONNECT ${request.url}`);
    socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
  });
  await new Promise<void>((done) => proxy.listen(0, '127.0.0.1', done));
  const address = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const proxied = createClient({ proxy: { http: address, no: '127.0.0.1' } });
  assert.equal((await proxied.open(call('/')).head(soon())).status, 200);
  assert.deepEqual(seen, []);
  await proxied
    .open({ ...call('/'), url: 'http://models.invalid/v1' })
    .head(soon())
    .catch(() => undefined);
  assert.match(seen.join(), /models\.invalid/);
  await proxied.close();
  proxy.closeAllConnections();
  proxy.close();
});

import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { agesIn, Connection, percentiles, toBytes } from '../../bench/parts/raw-client.ts';

interface Heard {
  status: number;
  body: string;
}

describe('the lean client of the bench', () => {
  let server: Server;
  let connections = 0;
  const ask = (connection: Connection, path: string): Promise<Heard> =>
    new Promise((resolve) => {
      let body = '';
      const { port } = server.address() as AddressInfo;
      const bytes = toBytes({ port, path, headers: { 'x-name': 'value' }, body: '{"größe":1}' });
      connection.send(
        bytes,
        (status) => resolve({ status, body }),
        (part) => (body += part.toString('utf8')),
      );
    });
  const open = (): Connection => new Connection((server.address() as AddressInfo).port);

  before(async () => {
    server = createServer(async (request, response) => {
      let body = '';
      for await (const part of request) body += part;
      if (request.url === '/whole') response.writeHead(200, { 'content-length': Buffer.byteLength(body) }).end(body);
      else if (request.url === '/empty') response.writeHead(204, { 'content-length': 0 }).end();
      else if (request.url === '/last') response.writeHead(503, { connection: 'close', 'content-length': 2 }).end('no');
      else if (request.url === '/cut') request.socket.destroy();
      else {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        for (const piece of ['data: 0\n\n', 'data: {"t":"0\\r\\n"}\n\n', 'data: [DONE]\n\n']) {
          response.write(piece);
          await sleep(5);
        }
        response.end();
      }
    });
    server.on('connection', () => connections++);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  after(() => server.close());

  it('reads whole and chunked answers over one connection', async () => {
    const connection = open();
    const before = connections;
    assert.deepEqual(await ask(connection, '/whole'), { status: 200, body: '{"größe":1}' });
    assert.deepEqual(await ask(connection, '/empty'), { status: 204, body: '' });
    const { status, body } = await ask(connection, '/stream');
    assert.equal(status, 200);
    assert.match(body, /data: \[DONE\]\n\n\r\n0\r\n\r\n$/);
    assert.equal((await ask(connection, '/whole')).status, 200);
    assert.equal(connections - before, 1);
    connection.close();
  });
  it('opens a new one where the server closes, and tells of one that broke', async () => {
    const connection = open();
    assert.deepEqual(await ask(connection, '/last'), { status: 503, body: 'no' });
    assert.equal((await ask(connection, '/whole')).status, 200);
    assert.equal((await ask(connection, '/cut')).status, 0);
    assert.equal((await ask(connection, '/whole')).status, 200);
    connection.close();
  });
  it('finds the age of every event', () => {
    assert.deepEqual(agesIn(Buffer.from('data: {"content":"t=1000 "}\n\ndata: {"content":"t=3500 "}\n\ndata: [DONE]\n\n'), 4000), [3, 0.5]);
  });
  it('orders what was measured', () => {
    const values = Array.from({ length: 100 }, (_, at) => 99 - at);
    assert.deepEqual(percentiles(values), { count: 100, p50: 50, p90: 90, p99: 99, max: 99 });
    assert.deepEqual(percentiles([]), { count: 0, p50: null, p90: null, p99: null, max: null });
  });
});

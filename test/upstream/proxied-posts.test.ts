import assert from 'node:assert/strict';
import http from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { it } from 'node:test';
import { startApp, user } from '../app-kit.ts';

it('what hermes calls beside models goes by the proxy of the environment, too', async () => {
  const tunnels: string[] = [];
  const service = http.createServer((request, response) => {
    request.resume();
    response.setHeader('content-type', 'application/json').end(
      JSON.stringify({
        data: [
          { index: 0, embedding: [1, 0] },
          { index: 1, embedding: [1, 0] },
        ],
      }),
    );
  });
  const proxy = http.createServer().on('connect', (request, socket) => {
    tunnels.push(String(request.url));
    const to = connect(port(service), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      to.pipe(socket).pipe(to);
    });
    to.on('error', () => undefined);
    socket.on('error', () => undefined).on('close', () => to.destroy());
  });
  const port = (server: http.Server): number => (server.address() as AddressInfo).port;
  for (const server of [service, proxy]) await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const app = await startApp(
    {
      embedding: { provider: 'openai', model_name: 'e', api_base: 'http://embeddings.test/v1', timeout_ms: 3000 },
      route_rules: [{ id: 'near', match: { embedding: { examples: ['where is my parcel'] } }, model: 'fast_model' }],
    },
    { env: { HTTP_PROXY: `http://127.0.0.1:${port(proxy)}` } },
  );
  assert.equal((await app.chat({ messages: user('my parcel') })).status, 200);
  assert.deepEqual([...new Set(tunnels)], ['embeddings.test:80']);
  await app.stop();
  for (const server of [service, proxy]) {
    server.closeAllConnections();
    server.close();
  }
});

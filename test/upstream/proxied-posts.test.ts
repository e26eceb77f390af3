import assert from 'node:assert/strict';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { it } from 'node:test';
import { startApp, user } from '../app-kit.ts';
import { startConnectProxy } from '../connect-proxy.ts';

it('what hermes calls beside models goes by the proxy of the environment, too', async () => {
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
  await new Promise<void>((done) => service.listen(0, '127.0.0.1', done));
  const proxy = await startConnectProxy(() => (service.address() as AddressInfo).port);
  const app = await startApp(
    {
      embedding: { provider: 'openai', model_name: 'e', api_base: 'http://embeddings.test/v1', timeout_ms: 3000 },
      route_rules: [{ id: 'near', match: { embedding: { examples: ['where is my parcel'] } }, model: 'fast_model' }],
    },
    { env: { HTTP_PROXY: proxy.url } },
  );
  assert.equal((await app.chat({ messages: user('my parcel') })).status, 200);
  assert.deepEqual([...new Set(proxy.tunnels)], ['embeddings.test:80']);
  await app.stop();
  await proxy.close();
  service.closeAllConnections();
  service.close();
});

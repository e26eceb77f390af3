// The floor: the leanest proxy that Node can be, node:http in front of undici's dispatch. Usage: node bare-proxy.mjs PORT UPSTREAM
import http from 'node:http';
import { Agent } from 'undici';

const [port, upstream] = process.argv.slice(2);
const origin = new URL(upstream).origin;
const agent = new Agent({ connections: 4096 });

http
  .createServer((request, response) => {
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
      const body = parts.length === 1 ? parts[0] : Buffer.concat(parts);
      let paused;
      agent.dispatch(
        { origin, path: request.url, method: request.method, headers: { 'content-type': 'application/json', authorization: 'Bearer sk-upstream' }, body },
        {
          onRequestStart() {},
          onResponseStart(controller, status, headers) {
            paused = controller;
            response.writeHead(status, {
              'content-type': headers['content-type'],
              ...(headers['content-length'] ? { 'content-length': headers['content-length'] } : {}),
            });
          },
          onResponseData(controller, chunk) {
            if (!response.write(chunk)) {
              controller.pause();
              response.once('drain', () => paused.resume());
            }
          },
          onResponseEnd() {
            response.end();
          },
          onResponseError() {
            response.destroy();
          },
        },
      );
    });
  })
  .listen(Number(port), '127.0.0.1', 4096);

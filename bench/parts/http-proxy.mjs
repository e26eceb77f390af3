// What one writes in five lines: http-proxy-3 with kept connections. Usage: node http-proxy.mjs PORT UPSTREAM
import http from 'node:http';
import httpProxy from 'http-proxy-3';

const [port, target] = process.argv.slice(2);
const proxy = httpProxy.createProxyServer({ target, agent: new http.Agent({ keepAlive: true }), headers: { authorization: 'Bearer sk-upstream' } });
proxy.on('error', (_error, _request, response) => response.destroy());
http.createServer((request, response) => proxy.web(request, response)).listen(Number(port), '127.0.0.1', 4096);

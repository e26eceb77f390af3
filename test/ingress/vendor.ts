import { createHash, randomBytes } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { type RunningApp, startApp } from '../app-kit.ts';

export interface Seen {
  method: string;
  url: string;
  headers: http.IncomingHttpHeaders;
  bytes: number;
  sha256: string;
}
export interface Vendor {
  app: RunningApp;
  /** Whole requests, in order. */
  seen: Seen[];
  last(): Seen;
  /** Bytes of every request's body so far. */
  received(): number;
  /** Requests whose connection is not over. */
  readonly running: number;
  download: Buffer;
  /** While true, nothing of a body is read. */
  stalled: boolean;
  close(): Promise<void>;
}
export const HELD_KEY = 'sk-held-0123456789abcdef';

/** A vendor with routes of its own, and the gateway before it. */
export async function startVendor(): Promise<Vendor> {
  const seen: Seen[] = [];
  const download = randomBytes(3_000_000);
  const state = { received: 0, running: 0, stalled: false };
  const answer = (url: string, response: http.ServerResponse): void => {
    if (url.includes('/content'))
      response.writeHead(200, { 'content-type': 'audio/mpeg', 'x-vendor': 'kept', connection: 'x-hop', 'x-hop': 'dropped', 'set-cookie': 'a=b' }).end(download);
    else if (url.includes('teapot')) response.writeHead(418, { 'content-type': 'text/plain' }).end('short and stout');
    else if (url.includes('cut')) response.writeHead(200, { 'content-length': '100' }).write('half', () => response.destroy());
    else if (url.includes('told=1'))
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end('{"object":"list","data":[],"model":"text-embedding-3-small","usage":{"prompt_tokens":1,"total_tokens":1}}');
    else response.writeHead(200, { 'content-type': 'application/json', 'x-hermes-tier': 'theirs' }).end('{"object":"list","data":[]}');
  };
  const server = http.createServer((request, response) => {
    const hash = createHash('sha256');
    let bytes = 0;
    state.running++;
    response.on('close', () => state.running--);
    request
      .on('error', () => undefined)
      .on('data', (data: Buffer) => {
        bytes += data.length;
        state.received += data.length;
        hash.update(data);
        if (!state.stalled) return;
        request.pause();
        const look = setInterval(() => {
          if (state.stalled) return;
          clearInterval(look);
          request.resume();
        }, 10);
      });
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      seen.push({ method, url, headers, bytes, sha256: hash.digest('hex') });
      answer(url, response);
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  const app = await startApp(
    {
      models: [
        { id: 'embed', provider: 'up', model_name: 'text-embedding-3-small', aliases: ['embed-alias'] },
        { id: 'fast_model', provider: 'simulator' },
      ],
      default_model: 'fast_model',
      providers: {
        up: { type: 'openai', api_base: `http://127.0.0.1:${port}/v1`, api_key_env: 'UP_KEY', headers: { 'x-ours': '1' }, query: { tenant: 'hermes' } },
      },
      passthrough: { upstream: 'up', body_limit: '60mb' },
      auth: { keys: [{ id: 'held', key_env: 'HELD_KEY', models: ['fast_model'] }] },
    },
    { env: { UP_KEY: 'sk-upstream-secret', HELD_KEY } },
  );
  return {
    app,
    seen,
    last: () => seen.at(-1) as Seen,
    received: () => state.received,
    get running() {
      return state.running;
    },
    download,
    get stalled() {
      return state.stalled;
    },
    set stalled(value) {
      state.stalled = value;
    },
    async close() {
      await app.stop();
      server.closeAllConnections();
      server.close();
    },
  };
}

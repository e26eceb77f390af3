import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Duplex, Readable, Transform } from 'node:stream';
import httpProxy from 'http-proxy-3';
import { HermesError, toHermesError } from '../contracts/errors.ts';
import type { Exchange, UpstreamTarget } from '../contracts/exchange.ts';
import type { PipelineExchange } from '../pipeline/exchange.ts';
import type { Agents } from '../upstream/proxy-agents.ts';
import type { Gateway } from './gateway.ts';
import { idHeaders } from './header-text.ts';
import { callHeaders, cleanResponse, replaceHeaders } from './pass-headers.ts';
import { heldToModels, permit, toUrl } from './pass-permission.ts';
import { passUpgrade } from './pass-upgrade.ts';
import { endPassed, isModelPath, PassedCall } from './passed-call.ts';
import { sendError } from './whole-reply.ts';

export interface PassThrough {
  serve(exchange: PipelineExchange, request: IncomingMessage, response: ServerResponse): Promise<void>;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
}

/** Every other `/v1/*`: unchanged, unbuffered, to the one upstream that `passthrough` names, with its credential for the caller's. */
export function createPassThrough(gateway: Gateway, agents: Agents): PassThrough {
  const proxy = httpProxy.createProxyServer({ changeOrigin: true, ignorePath: true, xfwd: false });
  // However the answer to the client ends, an upstream call that is not over ends with it: a refused upload, too.
  proxy.on('proxyReq', (outgoing, _request, response) => {
    let over = false;
    outgoing.once('response', (incoming) => incoming.once('end', () => (over = true)));
    response.once('close', () => over || outgoing.destroy());
  });
  const passing = new WeakMap<IncomingMessage, PassedCall>();
  proxy.on('proxyRes', (incoming, request, response) => {
    passing.get(request)?.watch(incoming);
    // The proxy pipes; a pipe does not tell the client that the other end broke off.
    incoming.once('close', () => {
      if (!incoming.complete) response.destroy();
    });
    cleanResponse(incoming);
  });
  // Each call has its own callback; this one is for what has none, and keeps the process alive.
  proxy.on('error', () => undefined);
  const options = (target: UpstreamTarget, exchange: Exchange) => {
    const url = toUrl(target, exchange.inbound.path);
    return { target: url, agent: agents.kept(url) };
  };

  const forward = (
    target: UpstreamTarget,
    exchange: Exchange,
    request: IncomingMessage,
    response: ServerResponse,
    buffered: Buffer | undefined,
  ): Promise<void> =>
    new Promise((resolve, reject) => {
      // A client that left while its limits were asked for: its `close` will not come again.
      if (exchange.cancelled || response.destroyed) return resolve();
      const body = buffered === undefined ? bounded(exchange, request) : Readable.from([buffered]);
      body.once('error', reject);
      replaceHeaders(request, target, buffered);
      // Most clients offer gzip, and what comes compressed cannot be read for the books.
      if (request.method === 'POST' && isModelPath(exchange.inbound.path)) request.headers['accept-encoding'] = 'identity';
      response.once('close', resolve);
      proxy.web(request, response, { ...options(target, exchange), buffer: body }, (cause) => {
        if (exchange.cancelled) resolve();
        else reject(new HermesError('upstream_error', 'The upstream could not be reached or broke off; try again.', { cause }));
      });
    });

  return {
    async serve(exchange, request, response) {
      const arrived = performance.now();
      const generation = gateway.generation();
      generation.enter();
      try {
        const answer = await generation.proxy(exchange, async () => {
          const target = permit(exchange);
          const buffered = await heldToModels(gateway, exchange, request);
          const call = new PassedCall(gateway, exchange, target);
          passing.set(request, call);
          for (const [name, value] of Object.entries(callHeaders(target))) response.setHeader(name, value);
          try {
            await forward(target, exchange, request, response, buffered);
          } catch (thrown) {
            call.end(toHermesError(thrown).code);
            throw thrown;
          }
          call.end(exchange.cancelled?.code);
          exchange.answer = { status: response.statusCode, body: null, facts: call.facts() };
          return exchange.answer as NonNullable<Exchange['answer']>;
        });
        if (answer.error && !response.headersSent)
          sendError(response, answer.error, { ...answer.headers, ...idHeaders(exchange.trace.id, exchange.id) }, gateway.doors);
        else if (answer.error) response.destroy();
        endPassed(gateway, exchange, request, answer.error?.status ?? answer.status, answer.error?.code, performance.now() - arrived);
      } finally {
        generation.leave();
      }
    },
    upgrade: (request, socket, head) => void passUpgrade({ gateway, proxy, agents }, request, socket, head),
  };
}

/** The body as it comes, cut off beyond `passthrough.body_limit`. */
function bounded(exchange: Exchange, request: IncomingMessage): Readable {
  const limit = exchange.config.passthrough.body_limit;
  const error = (): HermesError => new HermesError('request_too_large', `The upload is larger than ${limit} bytes (passthrough.body_limit).`);
  if (Number(request.headers['content-length']) > limit) throw error();
  if (request.headers['content-length'] !== undefined) return request;
  let size = 0;
  const counter = new Transform({
    transform(part: Buffer, _encoding, done) {
      size += part.length;
      if (size > limit) done(error());
      else done(null, part);
    },
  });
  return request.pipe(counter);
}

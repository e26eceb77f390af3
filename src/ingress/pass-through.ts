import { Agent as HttpAgent, type IncomingMessage, type ServerResponse } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { type Duplex, Readable, Transform } from 'node:stream';
import httpProxy from 'http-proxy-3';
import { DEFAULT_PASSTHROUGH } from '../access/passthrough-paths.ts';
import { HermesError, toHermesError } from '../contracts/errors.ts';
import type { Exchange, UpstreamTarget } from '../contracts/exchange.ts';
import type { PipelineExchange } from '../pipeline/exchange.ts';
import { isRecord } from '../wire/json.ts';
import type { Gateway } from './gateway.ts';
import { beginBare } from './identified.ts';
import { parseBody } from './parse-body.ts';
import { PassedCall } from './passed-call.ts';
import { readBody } from './read-body.ts';
import { hidesSeparators, isPassedThrough, normalisePath } from './router.ts';
import { sendError } from './whole-reply.ts';

/** Never forwarded: hop-by-hop (RFC 9110, 7.6.1), the caller's credentials and account, what proxies added, and hermes' own. */
const DROPPED = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'authorization',
  'x-api-key',
  'api-key',
  'cookie',
  'openai-organization',
  'openai-project',
  'forwarded',
  'via',
  'x-real-ip',
  'x-request-id',
]);
const DROPPED_PREFIXES = ['x-forwarded-', 'x-hermes-'];
/** Hop-by-hop for a response, and the id that is ours to give. */
const DROPPED_FROM_RESPONSE = ['connection', 'keep-alive', 'proxy-authenticate', 'trailer', 'x-request-id', 'set-cookie'];
const BROWSER_KEY = /^openai-insecure-api-key\.(.+)$/;

export interface PassThrough {
  serve(exchange: PipelineExchange, request: IncomingMessage, response: ServerResponse): Promise<void>;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  close(): void;
}

/** Every other `/v1/*`: unchanged, unbuffered, to the one upstream that `passthrough` names, with its credential for the caller's. */
export function createPassThrough(gateway: Gateway): PassThrough {
  const agents = { http: new HttpAgent({ keepAlive: true }), https: new HttpsAgent({ keepAlive: true }) };
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
    for (const name of namedIn(incoming.headers.connection)) delete incoming.headers[name];
    for (const name of DROPPED_FROM_RESPONSE) delete incoming.headers[name];
  });
  // Each call has its own callback; this one is for what has none, and keeps the process alive.
  proxy.on('error', () => undefined);
  const options = (target: UpstreamTarget, exchange: Exchange) => {
    const url = toUrl(target, exchange.inbound.path);
    return { target: url, agent: url.startsWith('https:') || url.startsWith('wss:') ? agents.https : agents.http };
  };

  const forward = (
    target: UpstreamTarget,
    exchange: Exchange,
    request: IncomingMessage,
    response: ServerResponse,
    buffered: Buffer | undefined,
  ): Promise<void> =>
    new Promise((resolve, reject) => {
      const body = buffered === undefined ? bounded(exchange, request) : Readable.from([buffered]);
      body.once('error', reject);
      replaceHeaders(request, target, buffered);
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
          try {
            await forward(target, exchange, request, response, buffered);
          } catch (thrown) {
            call.end(toHermesError(thrown).code);
            throw thrown;
          }
          call.end(exchange.cancelled?.code);
          exchange.answer = { status: response.statusCode, body: null, facts: { route: 'passthrough', upstream: target.id } };
          return exchange.answer as NonNullable<Exchange['answer']>;
        });
        if (answer.error && !response.headersSent) sendError(response, answer.error, { ...answer.headers, 'x-request-id': exchange.trace.id });
        else if (answer.error) response.destroy();
        end(gateway, exchange, request, answer.error?.status ?? answer.status, answer.error?.code, performance.now() - arrived);
      } finally {
        generation.leave();
      }
    },
    upgrade(request, socket, head) {
      const exchange = beginBare(gateway, withBrowserKey(request), gateway.environment.uuid());
      socket.on('error', () => undefined);
      socket.once('close', () => exchange.cancel(new HermesError('client_closed', 'The client closed the connection.')));
      void upgrade(exchange, request, socket, head);
    },
    close() {
      agents.http.destroy();
      agents.https.destroy();
    },
  };

  async function upgrade(exchange: PipelineExchange, request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const arrived = performance.now();
    const generation = gateway.generation();
    generation.enter();
    const answer = await generation.proxy(exchange, async () => {
      if (!isPassedThrough(gateway, normalisePath(exchange.inbound.path) ?? '')) throw new HermesError('not_found', 'There is no websocket at this path.');
      const target = permit(exchange);
      replaceHeaders(request, target, undefined, true);
      const { target: url, agent: _agent } = options(target, exchange);
      await new Promise<void>((resolve, reject) => {
        socket.once('close', resolve);
        proxy.ws(request, socket, head, { target: url.replace(/^http/, 'ws') }, (cause: Error) =>
          reject(new HermesError('upstream_error', 'The upstream could not be reached.', { cause })),
        );
      });
      exchange.answer = { status: 101, body: null, facts: { route: 'passthrough', upstream: target.id } };
      return exchange.answer as NonNullable<Exchange['answer']>;
    });
    if (answer.error) refuseUpgrade(socket, answer.error);
    end(gateway, exchange, request, answer.error?.status ?? answer.status, answer.error?.code, performance.now() - arrived);
    generation.leave();
  }
}

function end(gateway: Gateway, exchange: Exchange, request: IncomingMessage, status: number, error: string | undefined, durationMs: number): void {
  gateway.ended({
    exchange,
    traceId: exchange.trace.id,
    requestId: exchange.id,
    method: request.method ?? 'GET',
    path: (exchange.inbound.path.split('?')[0] ?? '/').slice(0, 200),
    status,
    error,
    durationMs,
    overheadMs: undefined,
    firstTokenMs: undefined,
  });
}

function namedIn(connection: string | undefined): string[] {
  return (connection ?? '')
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '');
}

/** What this key may reach; throws 403, or 404 when nothing is passed through at all. */
function permit(exchange: Exchange): UpstreamTarget {
  const path = normalisePath(exchange.inbound.path) ?? '';
  if (hidesSeparators(exchange.inbound.path)) throw new HermesError('invalid_request', 'The path may not hold encoded slashes.');
  const { principal, config } = exchange;
  if (path.startsWith('/v1/organization')) throw new HermesError('permission_denied', 'The organization routes are not passed through.');
  const allowed = principal?.passthrough ?? DEFAULT_PASSTHROUGH;
  const stored = isDefault(allowed) && STORED_RESPONSE.test(path);
  const mayReach = principal?.admin || (!stored && allowed.some((entry) => reaches(entry, path)));
  if (!mayReach) throw new HermesError('permission_denied', `This key may not reach ${path.slice(0, 100)}; let its configuration list it under passthrough.`);
  const { target } = config.passthrough;
  if (target === undefined)
    throw new HermesError('not_found', `Nothing serves ${path.slice(0, 100)}: name an upstream as passthrough.upstream to have it passed through.`);
  if (target.apiKeyEnv !== undefined && target.apiKey === undefined)
    throw new HermesError('upstream_key_missing', `The upstream's key is missing: set ${target.apiKeyEnv}.`);
  return target;
}

/** A response that the vendor keeps, whoever asked for it: not among the stateless paths, though beneath one of them. */
const STORED_RESPONSE = /^\/v1\/responses\/(?!(?:input_tokens|compact)$)/;

function isDefault(allowed: readonly string[]): boolean {
  return allowed.length === DEFAULT_PASSTHROUGH.length && allowed.every((entry, index) => entry === DEFAULT_PASSTHROUGH[index]);
}

function reaches(entry: string, path: string): boolean {
  if (entry === '*' || entry === path) return true;
  if (entry.endsWith('*')) return path.startsWith(entry.slice(0, -1));
  return path.startsWith(`${entry}/`);
}

/** `/v1/files?x=1` on the upstream's base. */
function toUrl(target: UpstreamTarget, path: string): string {
  const query = path.indexOf('?');
  const pathname = (normalisePath(path) ?? '/').replace(/^\/v1/, '');
  const base = target.apiBase.replace(/\/+$/, '');
  const url = new URL(`${target.provider === 'anthropic' && !/\/v1$/.test(base) ? `${base}/v1` : base}${pathname}${query < 0 ? '' : path.slice(query)}`);
  for (const [name, value] of Object.entries(target.query)) url.searchParams.set(name, value);
  return url.href;
}

/** The JSON body of a key that may not use every model is read for its `model`; all others are never buffered. */
async function heldToModels(gateway: Gateway, exchange: Exchange, request: IncomingMessage): Promise<Buffer | undefined> {
  const models = exchange.principal?.models ?? [];
  if (models.includes('*') || !/\bjson\b/.test(request.headers['content-type'] ?? '') || request.method === 'GET') return undefined;
  const { server } = exchange.config;
  const bytes = await readBody(request, server.body_limit);
  delete request.headers['content-encoding'];
  const body = bytes.length === 0 ? undefined : parseBody(bytes, server.max_depth);
  const model = isRecord(body) && typeof body.model === 'string' ? body.model : undefined;
  const entry = model === undefined ? undefined : exchange.config.registry.find(model);
  if (model !== undefined && ![model, entry?.id ?? model].some((name) => gateway.rooms.access.allows(models, name))) {
    throw new HermesError('model_not_allowed', `This key may not use the model '${model.slice(0, 128)}'.`, { param: 'model' });
  }
  return bytes;
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

/** The request's own headers are what the proxy forwards: what must not pass is taken out of them. */
function replaceHeaders(request: IncomingMessage, target: UpstreamTarget, buffered: Buffer | undefined, websocket = false): void {
  const { headers } = request;
  const dropped = new Set([...DROPPED, ...namedIn(headers.connection)]);
  for (const name of Object.keys(headers)) {
    const keep = websocket && (name === 'connection' || name === 'upgrade');
    if (!keep && (dropped.has(name) || DROPPED_PREFIXES.some((prefix) => name.startsWith(prefix)))) delete headers[name];
  }
  if (websocket && typeof headers['sec-websocket-protocol'] === 'string') {
    const kept = headers['sec-websocket-protocol']
      .split(',')
      .map((part) => part.trim())
      .filter((part) => !BROWSER_KEY.test(part));
    if (kept.length > 0) headers['sec-websocket-protocol'] = kept.join(', ');
    else delete headers['sec-websocket-protocol'];
  }
  Object.assign(headers, target.headers);
  if (target.apiKey !== undefined) {
    if (target.provider === 'anthropic') headers['x-api-key'] = target.apiKey;
    else headers.authorization = `Bearer ${target.apiKey}`;
  }
  if (buffered !== undefined) {
    headers['content-length'] = String(buffered.length);
    delete headers['transfer-encoding'];
  }
}

/** Browsers cannot set headers on a websocket; OpenAI's clients put the key into the subprotocol. */
function withBrowserKey(request: IncomingMessage): IncomingMessage {
  const offered = request.headers['sec-websocket-protocol'];
  if (request.headers.authorization !== undefined || typeof offered !== 'string') return request;
  for (const part of offered.split(',')) {
    const key = BROWSER_KEY.exec(part.trim())?.[1];
    if (key) request.headers.authorization = `Bearer ${key}`;
  }
  return request;
}

function refuseUpgrade(socket: Duplex, thrown: unknown): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const error = toHermesError(thrown);
  const body = JSON.stringify({ error: { message: error.message, type: error.type, param: error.param, code: error.wireCode } });
  socket.end(
    `HTTP/1.1 ${error.status} ${error.status === 401 ? 'Unauthorized' : 'Refused'}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
}

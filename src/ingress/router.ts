import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AdminReply } from '../contracts/admin.ts';
import type { Door, KeptForm } from '../contracts/door.ts';
import { HermesError, toHermesError } from '../contracts/errors.ts';
import type { Answer } from '../contracts/exchange.ts';
import { CONTENT_TYPES, formatFor } from '../telemetry/metrics.ts';
import { isRecord, stringifyJson } from '../wire/json.ts';
import { requestIdOf } from '../wire/lift-ask.ts';
import { allHeaders, callerRequestId } from './caller-headers.ts';
import { serveChat } from './chat.ts';
import { COUNT_PATHS, countTokens } from './count-tokens.ts';
import type { Gateway } from './gateway.ts';
import { idHeaders } from './header-text.ts';
import { beginBare, followClient, identified, requireAdmin } from './identified.ts';
import { isKeptPath, serveKept } from './kept-responses.ts';
import { listModels, showModel } from './models.ts';
import { parseBody } from './parse-body.ts';
import { readBody } from './read-body.ts';
import { turnAwayWrongKey } from './turn-away.ts';
import { send, sendError, toErrorHeaders } from './whole-reply.ts';

/** Which door a chat path belongs to. */
const CHAT_PATHS: Readonly<Record<string, string>> = {
  '/v1/chat/completions': 'openai-chat',
  '/v1/chat': 'openai-chat',
  '/v1/messages': 'anthropic-messages',
  '/v1/responses': 'openai-responses',
};
/** What is signed where no body is read. */
const NO_BODY = Buffer.alloc(0);
const JSON_TYPE = { 'content-type': 'application/json' };

/** The one place that maps paths to handlers. Paths are normalised first: what hermes owns never falls through. */
export function createRouter(gateway: Gateway): (request: IncomingMessage, response: ServerResponse) => void {
  return (request, response) => {
    const traceId = gateway.environment.uuid();
    route(gateway, request, response, traceId).catch((thrown: unknown) => {
      const error = toHermesError(thrown);
      if (!(thrown instanceof HermesError)) gateway.log.error({ request_id: traceId, err: thrown }, 'request failed');
      if (response.headersSent) response.destroy();
      else sendError(response, error, idHeaders(traceId, requestIdOf(undefined, allHeaders(request)) ?? traceId), gateway.doors);
      turnedAway(gateway, request, traceId, error);
    });
  };
}

/** Its one line in the log: nobody was asked who calls. */
export function turnedAway(gateway: Gateway, request: IncomingMessage, traceId: string, error: HermesError): void {
  const headers = allHeaders(request);
  gateway.looked({
    exchange: undefined,
    traceId,
    requestId: requestIdOf(undefined, headers) ?? traceId,
    callerRequestId: callerRequestId(headers),
    method: request.method ?? 'GET',
    path: (request.url ?? '/').split('?')[0]?.slice(0, 200) ?? '/',
    status: error.status,
    error: error.code,
    durationMs: 0,
    overheadMs: undefined,
    firstTokenMs: undefined,
  });
}

/** A path that is normal as it stands: the common case. */
const PLAIN_PATH = /^(?:\/[A-Za-z0-9_~-][A-Za-z0-9_.~-]*)+$/;

/** Dots and doubled slashes resolved, percent-encoded letters decoded; undefined for what is no path. */
export function normalisePath(url: string): string | undefined {
  if (PLAIN_PATH.test(url)) return url;
  try {
    // Two slashes at the beginning would name a host.
    const { pathname } = new URL(url.replace(/^[/\\]{2,}/, '/'), 'http://hermes');
    const decoded = pathname.replaceAll(/%(2d|2e|5f|7e|3[0-9]|[46][1-9a-f]|[57][0-9a])/gi, (code) => decodeURIComponent(code));
    const resolved = new URL(decoded.replaceAll('\\', '/').replaceAll(/\/{2,}/g, '/'), 'http://hermes').pathname;
    return resolved.length > 1 && resolved.endsWith('/') ? resolved.slice(0, -1) : resolved;
  } catch {
    return undefined;
  }
}

/** `%2f`, `%5c` and `%00`: what an upstream might decode into another path than the one that was looked at. */
export function hidesSeparators(url: string): boolean {
  return /%(2f|5c|00)/i.test(url.split('?', 1)[0] ?? '');
}

/** Two hosts are two readings of one request (RFC 9112, 3.2); Node keeps the first and says nothing. */
function hasTwoHosts({ rawHeaders }: IncomingMessage): boolean {
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) if (rawHeaders[i]?.length === 4 && rawHeaders[i]?.toLowerCase() === 'host') hosts++;
  return hosts > 1;
}

async function route(gateway: Gateway, request: IncomingMessage, response: ServerResponse, traceId: string): Promise<void> {
  if (hasTwoHosts(request)) throw new HermesError('invalid_request', 'The request names its host twice.', { headers: { connection: 'close' } });
  const path = normalisePath(request.url ?? '/');
  if (path === undefined) throw new HermesError('invalid_request', 'The path is not valid.');
  const door = doorFor(gateway, path);
  if (door) {
    if (request.method !== 'POST') return methodNotAllowed(gateway, request, response, traceId, 'POST');
    return serveChat(gateway, door, request, response, traceId);
  }
  if (isCounted(gateway, path)) return tokens(gateway, path, { request, response, traceId });
  if (path === '/healthz') return sendJson(response, { status: 'ok' });
  if (path === '/readyz') return ready(gateway, response);
  if (path === '/metrics') return metrics(gateway, request, response);
  if (path === '/v1/models' || path.startsWith('/v1/models/')) return models(gateway, request, response, traceId, path);
  if (path === '/console' || path.startsWith('/console/')) return page(gateway, response, path);
  if (path.startsWith('/admin/') || path.startsWith('/debug/')) return admin(gateway, request, response, traceId, path);
  const kept = isKeptPath(path) ? gateway.doors.get('openai-responses')?.kept : undefined;
  if (kept) return keptResponse(gateway, kept, path, { request, response, traceId });
  if (path.startsWith('/v1/')) return proxy(gateway, request, response, traceId);
  throw new HermesError('not_found', `There is nothing at ${path.slice(0, 100)}. Chat is POST /v1/chat/completions.`);
}

/** Is this path nobody's here, so that it may go to the upstream of the pass-through? */
export function isPassedThrough(gateway: Gateway, path: string): boolean {
  const owned = doorFor(gateway, path) !== undefined || isCounted(gateway, path) || path === '/v1/models' || path.startsWith('/v1/models/');
  return path.startsWith('/v1/') && !owned;
}

/** Beside a door, and hermes' own like it: what a vendor counts would be another model's. */
function isCounted(gateway: Gateway, path: string): boolean {
  if (COUNT_PATHS[path] === undefined) return false;
  return !path.startsWith('/v1/responses/') || !gateway.generation().config.passthrough.responses;
}

function doorFor(gateway: Gateway, path: string): Door | undefined {
  const form = CHAT_PATHS[path];
  if (form === undefined) return undefined;
  if (form === 'openai-responses' && gateway.generation().config.passthrough.responses) return undefined;
  return gateway.doors.get(form);
}

/** A response that hermes itself has given: no upstream is asked for an id that it cannot know. */
async function keptResponse(
  gateway: Gateway,
  kept: KeptForm,
  path: string,
  { request, response, traceId }: { request: IncomingMessage; response: ServerResponse; traceId: string },
): Promise<void> {
  const answer = await identified(gateway, beginBare(gateway, request, traceId, NO_BODY), (exchange) => serveKept(gateway, kept, exchange, path));
  reply(gateway, response, traceId, answer, (view) => sendJson(response, view, 200, { 'x-request-id': traceId }));
}

function sendJson(response: ServerResponse, value: unknown, status = 200, headers: Record<string, string> = {}): void {
  send(response, status, { ...JSON_TYPE, ...headers }, Buffer.from(stringifyJson(value)));
}

async function ready(gateway: Gateway, response: ServerResponse): Promise<void> {
  const missing = gateway.draining() ? 'draining' : await gateway.notReady();
  sendJson(response, missing === undefined ? { status: 'ready' } : { status: 'not ready', reason: missing }, missing === undefined ? 200 : 503);
}

/** In constant time: the time must not tell how near a guess came. */
function isSame(given: string, wanted: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(wanted));
}

async function metrics(gateway: Gateway, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { config } = gateway.generation();
  const variable = config.metrics.token_env;
  const token = variable === undefined ? undefined : config.secrets.get(variable);
  if (variable !== undefined && (token === undefined || !isSame(request.headers.authorization ?? '', `Bearer ${token}`)))
    throw new HermesError('invalid_api_key', 'The metrics need their token as "Authorization: Bearer …".');
  const format = formatFor(request.headers.accept);
  send(response, 200, { 'content-type': CONTENT_TYPES[format], vary: 'accept' }, Buffer.from(await gateway.metrics.text(format)));
}

/** The answer of an identified request: what it gave, or its error. */
function reply({ doors }: Gateway, response: ServerResponse, traceId: string, answer: Answer, render: (view: unknown) => void): void {
  if (answer.error) sendError(response, answer.error, { 'x-request-id': traceId }, doors);
  else render(answer.view);
}

async function methodNotAllowed(gateway: Gateway, request: IncomingMessage, response: ServerResponse, traceId: string, allow: string): Promise<void> {
  const answer = await identified(gateway, beginBare(gateway, request, traceId), () => {
    throw new HermesError('method_not_allowed', `Use ${allow} on this path.`, { headers: { allow } });
  });
  reply(gateway, response, traceId, answer, () => undefined);
}

async function models(gateway: Gateway, request: IncomingMessage, response: ServerResponse, traceId: string, path: string): Promise<void> {
  if (request.method !== 'GET' && request.method !== 'HEAD') return methodNotAllowed(gateway, request, response, traceId, 'GET');
  const answer = await identified(gateway, beginBare(gateway, request, traceId, NO_BODY), (exchange) =>
    path === '/v1/models' ? listModels(exchange, gateway.rooms.access) : showModel(exchange, gateway.rooms.access, decoded(path.slice('/v1/models/'.length))),
  );
  reply(gateway, response, traceId, answer, (view) => sendJson(response, view, 200, { 'x-request-id': traceId }));
}

/** What cannot be decoded is taken as it stands: no model has that name. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

async function admin(gateway: Gateway, request: IncomingMessage, response: ServerResponse, traceId: string, path: string): Promise<void> {
  const { server } = gateway.generation().config;
  const hasBody = request.method === 'POST' || request.method === 'PUT' || request.method === 'PATCH';
  if (hasBody) await turnAwayWrongKey(gateway, request, traceId);
  const bytes = hasBody ? await readBody(request, server.body_limit) : NO_BODY;
  const exchange = beginBare(gateway, request, traceId, bytes);
  followClient(exchange, response);
  const serve = async (): Promise<AdminReply> => {
    requireAdmin(exchange);
    const query = new URLSearchParams(request.url?.split('?', 2)[1]);
    const body = bytes.length > 0 ? parseBody(bytes, server.max_depth) : undefined;
    const found = await gateway.admin({ method: request.method ?? 'GET', path, query, body, exchange });
    if (found === undefined) throw new HermesError('not_found', `There is nothing at ${request.method} ${path.slice(0, 100)}.`);
    return found;
  };
  const answer = await identified(gateway, exchange, serve, ({ status = 200 }) => status);
  reply(gateway, response, traceId, answer, (view) => sendAdmin(response, traceId, view));
}

async function tokens(
  gateway: Gateway,
  path: string,
  { request, response, traceId }: { request: IncomingMessage; response: ServerResponse; traceId: string },
): Promise<void> {
  const { form = '', object } = COUNT_PATHS[path] ?? {};
  const door = gateway.doors.get(form);
  if (door === undefined) return proxy(gateway, request, response, traceId);
  if (request.method !== 'POST') return methodNotAllowed(gateway, request, response, traceId, 'POST');
  const headers = { 'x-request-id': traceId, ...(form === 'anthropic-messages' ? { 'request-id': traceId } : {}) };
  try {
    const answer = await countTokens(gateway, door, request, traceId);
    if (answer.error) throw answer.error;
    sendJson(response, { ...(object === undefined ? {} : { object }), ...Object(answer.view) }, 200, headers);
  } catch (thrown) {
    const error = toHermesError(thrown);
    sendJson(response, door.toError(error, { requestId: traceId }), error.status, { ...headers, ...toErrorHeaders(error) });
  }
}

function sendAdmin(response: ServerResponse, traceId: string, view: unknown): void {
  const { status = 200, contentType, body } = view as AdminReply;
  const headers = { 'x-request-id': traceId, 'cache-control': 'no-store' };
  if (contentType !== undefined)
    send(response, status, { ...headers, 'content-type': contentType }, Buffer.from(typeof body === 'string' ? body : stringifyJson(body)));
  else sendJson(response, isRecord(body) || Array.isArray(body) ? body : { data: body }, status, headers);
}

function page(gateway: Gateway, response: ServerResponse, path: string): void {
  const found = gateway.console(path);
  if (found === undefined) throw new HermesError('not_found', 'There is no such page in the console.');
  send(response, 200, { 'content-type': found.contentType, ...found.headers }, found.bytes);
}

async function proxy(gateway: Gateway, request: IncomingMessage, response: ServerResponse, traceId: string): Promise<void> {
  if (hidesSeparators(request.url ?? '/'))
    throw new HermesError('invalid_request', 'The path may not hold encoded slashes: an upstream might take it for another one than hermes allowed.');
  gateway.admission.enter(gateway.generation().config.server.max_in_flight);
  try {
    const exchange = beginBare(gateway, request, traceId);
    followClient(exchange, response);
    for (const [name, value] of Object.entries(idHeaders(traceId, exchange.id))) response.setHeader(name, value);
    await gateway.proxy(exchange, request, response);
  } finally {
    gateway.admission.leave();
  }
}

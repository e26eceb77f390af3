import { type ClientRequest, type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type httpProxy from 'http-proxy-3';
import { HermesError, toErrorBody, toHermesError } from '../contracts/errors.ts';
import type { Exchange } from '../contracts/exchange.ts';
import type { PipelineExchange } from '../pipeline/exchange.ts';
import type { Agents } from '../upstream/proxy-agents.ts';
import { requestIdOf } from '../wire/lift-ask.ts';
import { allHeaders } from './caller-headers.ts';
import type { Gateway } from './gateway.ts';
import { idHeaders, toSendable } from './header-text.ts';
import { beginBare } from './identified.ts';
import { callHeaders, replaceHeaders, withBrowserKey } from './pass-headers.ts';
import { permit, toUrl } from './pass-permission.ts';
import { endPassed, PassedCall } from './passed-call.ts';
import { isPassedThrough, normalisePath, turnedAway } from './router.ts';
import { toErrorHeaders } from './whole-reply.ts';

interface Passing {
  gateway: Gateway;
  proxy: httpProxy.ProxyServer<typeof IncomingMessage, typeof ServerResponse, Error>;
  agents: Agents;
}

/** A websocket passed through; whatever goes wrong is an answer on its socket, never an exception of the process. */
export async function passUpgrade(passing: Passing, request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
  const { gateway } = passing;
  socket.on('error', () => undefined);
  const traceId = gateway.environment.uuid();
  let exchange: PipelineExchange;
  try {
    exchange = beginBare(gateway, withBrowserKey(request), traceId);
    gateway.admission.enter(exchange.config.server.max_in_flight);
  } catch (thrown) {
    const error = toHermesError(thrown);
    refuseUpgrade(socket, error, idHeaders(traceId, requestIdOf(undefined, allHeaders(request)) ?? traceId));
    turnedAway(gateway, request, traceId, error);
    return;
  }
  socket.once('close', () => exchange.cancel(new HermesError('client_closed', 'The client closed the connection.')));
  exchange.onCancel(() => socket.destroy());
  gateway.inFlight.add(exchange);
  const generation = gateway.generation();
  generation.enter();
  const arrived = performance.now();
  try {
    const answer = await generation.proxy(exchange, () => relay(passing, exchange, request, socket, head));
    if (answer.error) refuseUpgrade(socket, answer.error, { ...answer.headers, ...idHeaders(traceId, exchange.id) });
    endPassed(gateway, exchange, request, answer.error?.status ?? answer.status, answer.error?.code, performance.now() - arrived);
  } finally {
    gateway.inFlight.delete(exchange);
    gateway.admission.leave();
    generation.leave();
  }
}

async function relay(
  { gateway, proxy, agents }: Passing,
  exchange: PipelineExchange,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): Promise<NonNullable<Exchange['answer']>> {
  if (!isPassedThrough(gateway, normalisePath(exchange.inbound.path) ?? '')) throw new HermesError('not_found', 'There is no websocket at this path.');
  const target = permit(exchange);
  replaceHeaders(request, target, undefined, true);
  const call = new PassedCall(gateway, exchange, target);
  const told = { ...idHeaders(exchange.trace.id, exchange.id), ...callHeaders(target) };
  await new Promise<void>((resolve, reject) => {
    if (socket.destroyed) resolve();
    socket.once('close', resolve);
    // It is told of the request before `ws` returns.
    let opened = false;
    const offer = (outgoing: ClientRequest): unknown =>
      outgoing
        .once('upgrade', (incoming) => {
          opened = true;
          call.opened();
          Object.assign(incoming.headers, told);
        })
        .once('response', (incoming) => Object.assign(incoming.headers, told));
    proxy.once('proxyReqWs', offer);
    const url = toUrl(target, exchange.inbound.path).replace(/^http/, 'ws');
    const agent = agents.once(url);
    proxy.ws(request, socket, head, { target: url, ...(agent ? { agent } : {}) }, (cause: Error) => {
      const error = new HermesError('upstream_error', 'The upstream could not be reached or broke off; try again.', { cause });
      // Now: the proxy closes the socket when this returns.
      if (!opened) refuseUpgrade(socket, error, told);
      reject(error);
    });
    proxy.off('proxyReqWs', offer);
  }).catch((thrown: unknown) => {
    call.end(toHermesError(thrown).code);
    throw thrown;
  });
  // However it ended, somebody closed it: that is no failure.
  call.end(undefined);
  exchange.answer = { status: 101, body: null, facts: call.facts() };
  return exchange.answer as NonNullable<Exchange['answer']>;
}

/** As any refusal, written by hand: Node has no response for an upgrade. */
function refuseUpgrade(socket: Duplex, error: HermesError, more: Record<string, string>): void {
  if (socket.writableEnded) return;
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const body = JSON.stringify(toErrorBody(error));
  const headers: Record<string, string> = { 'content-type': 'application/json', ...more, ...toErrorHeaders(error) };
  toSendable(headers);
  Object.assign(headers, { 'content-length': String(Buffer.byteLength(body)), connection: 'close' });
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`HTTP/1.1 ${error.status} ${STATUS_CODES[error.status] ?? 'Refused'}\r\n${lines.join('')}\r\n`, 'latin1');
  socket.end(body);
}

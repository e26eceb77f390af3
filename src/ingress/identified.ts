import type { IncomingMessage, ServerResponse } from 'node:http';
import { readCredential } from '../access/credential.ts';
import { HermesError, toHermesError } from '../contracts/errors.ts';
import type { Answer, Exchange } from '../contracts/exchange.ts';
import type { Form } from '../contracts/stream.ts';
import { PipelineExchange } from '../pipeline/exchange.ts';
import { ExchangeTrace } from '../telemetry/trace.ts';
import { liftAsk } from '../wire/lift-ask.ts';
import { allHeaders, callerRequestId, hideCredentials, remoteAddress } from './caller-headers.ts';
import type { Gateway } from './gateway.ts';

/** An exchange without a chat body: models, pass-through, admin. The caller's fields come by headers alone. */
export function beginBare(gateway: Gateway, request: IncomingMessage, traceId: string, bytes?: Uint8Array, form: Form = 'openai-chat'): PipelineExchange {
  const { config } = gateway.generation();
  const headers = allHeaders(request);
  const credential = readCredential(headers);
  const visible = hideCredentials(headers);
  const { ask } = liftAsk({}, visible);
  const empty = { messages: [] };
  return new PipelineExchange({
    id: ask.requestId ?? traceId,
    config,
    headers: visible,
    ask,
    wants: { stream: false, form, verbose: false, usage: false, commit: undefined },
    inbound: {
      form,
      method: request.method ?? 'GET',
      path: request.url ?? '/',
      bytes,
      request: empty,
      remoteAddress: remoteAddress(request, config.server.trusted_proxies),
      ...(credential ? { credential } : {}),
    },
    trace: new ExchangeTrace(traceId, gateway.environment.now(), performance.now(), visible.traceparent),
    deadline: Number.POSITIVE_INFINITY,
    progress: () => undefined,
  });
}

/** Runs `inside` for a caller that has proved who it is; the answer is what it gives, with the status that `statusOf` finds in it. */
export async function identified<T>(
  gateway: Gateway,
  exchange: PipelineExchange,
  inside: (exchange: Exchange) => Promise<T> | T,
  statusOf: (given: T) => number = () => 200,
): Promise<Answer> {
  const arrived = performance.now();
  const answer = await gateway.generation().identify(exchange, async () => {
    const body = await inside(exchange);
    exchange.answer = { body, status: statusOf(body) };
    return exchange.answer as Answer;
  });
  const { method, path } = exchange.inbound;
  gateway.looked({
    exchange,
    traceId: exchange.trace.id,
    requestId: exchange.id,
    callerRequestId: callerRequestId(exchange.headers),
    method,
    path: path.split('?')[0] ?? '/',
    status: answer.status,
    error: answer.error?.code,
    durationMs: performance.now() - arrived,
    overheadMs: undefined,
    firstTokenMs: undefined,
  });
  return answer;
}

export function requireAdmin(exchange: Exchange): void {
  if (!exchange.principal?.admin) throw new HermesError('permission_denied', 'This route needs an admin key.');
}

/** Cancels when the client leaves. */
export function followClient(exchange: PipelineExchange, response: ServerResponse): void {
  response.once('close', () => {
    if (!response.writableFinished) exchange.cancel(toHermesError(new HermesError('client_closed', 'The client closed the connection.')));
  });
}

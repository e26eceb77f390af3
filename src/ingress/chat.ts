import type { IncomingMessage, ServerResponse } from 'node:http';
import { readCredential } from '../access/credential.ts';
import type { Door, Entered } from '../contracts/door.ts';
import { HermesError, toHermesError } from '../contracts/errors.ts';
import type { Answer, Exchange, Facts, Principal } from '../contracts/exchange.ts';
import { PipelineExchange } from '../pipeline/exchange.ts';
import type { Generation } from '../pipeline/generation.ts';
import { captureContent } from '../telemetry/capture-content.ts';
import { ExchangeTrace } from '../telemetry/trace.ts';
import { spread } from '../wire/collect.ts';
import { requestIdOf } from '../wire/lift-ask.ts';
import { allHeaders, callerRequestId, hideCredentials, remoteAddress } from './caller-headers.ts';
import type { Gateway } from './gateway.ts';
import { idHeaders, toSendable } from './header-text.ts';
import { Heartbeat } from './heartbeat.ts';
import { addFactHeaders, costOf, toDecimal, toHermesObject } from './hermes-object.ts';
import { parseBody } from './parse-body.ts';
import { readBody } from './read-body.ts';
import { replyStream } from './stream-reply.ts';
import { signerOf, turnAwayWrongKey } from './turn-away.ts';
import { collectAnswer, isCompletion, send, toBodyBytes, toErrorHeaders } from './whole-reply.ts';

const sseHeaders = (): Record<string, string> => ({
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
});

/** One chat request from its first byte to its last: every way out of here ends in `gateway.ended`. */
export async function serveChat(gateway: Gateway, door: Door, request: IncomingMessage, response: ServerResponse, traceId: string): Promise<void> {
  const generation = gateway.generation();
  generation.enter();
  try {
    await new ChatRequestRun(gateway, generation, door, request, response, traceId).run();
  } finally {
    generation.leave();
  }
}

class ChatRequestRun {
  readonly #gateway: Gateway;
  readonly #generation: Generation;
  readonly #door: Door;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #traceId: string;
  readonly #arrived = performance.now();
  readonly #startedAt: number;
  #exchange: PipelineExchange | undefined;
  /** Who sent it, where that was found out before the step `auth`. */
  #principal: Principal | undefined;
  #bytes: Buffer | undefined;
  #body: unknown;
  #heartbeat: Heartbeat | undefined;
  #firstTokenMs: number | undefined;
  #overheadMs: number | undefined;

  constructor(gateway: Gateway, generation: Generation, door: Door, request: IncomingMessage, response: ServerResponse, traceId: string) {
    this.#gateway = gateway;
    this.#generation = generation;
    this.#door = door;
    this.#request = request;
    this.#response = response;
    this.#traceId = traceId;
    this.#startedAt = gateway.environment.now();
  }

  async run(): Promise<void> {
    let error: HermesError | undefined;
    let status = 500;
    let deadline: NodeJS.Timeout | undefined;
    let admitted = false;
    const { admission } = this.#gateway;
    try {
      admission.enter(this.#generation.config.server.max_in_flight);
      admitted = true;
      const exchange = await this.#begin();
      this.#exchange = exchange;
      this.#gateway.inFlight.add(exchange);
      deadline = this.#watch(exchange);
      const answer = await this.#generation.chat(exchange);
      status = answer.status;
      error = await this.#reply(exchange, answer);
    } catch (thrown) {
      error = toHermesError(thrown);
      if (!(thrown instanceof HermesError)) this.#gateway.log.error({ request_id: this.#traceId, err: thrown }, 'request failed');
      this.#refuse(error);
      if (this.#bytes && !this.#exchange) this.#principal ??= await signerOf(this.#gateway, this.#request, this.#traceId, this.#bytes);
    } finally {
      clearTimeout(deadline);
      if (this.#exchange) this.#gateway.inFlight.delete(this.#exchange);
      this.#heartbeat?.stop();
      if (admitted) admission.leave();
    }
    this.#ended(error?.status ?? status, error);
  }

  /** Reads, checks and translates; the exchange begins. */
  async #begin(): Promise<PipelineExchange> {
    const { config } = this.#generation;
    const request = this.#request;
    const headers = allHeaders(request);
    const credential = readCredential(headers);
    const early = turnAwayWrongKey(this.#gateway, request, this.#traceId, credential);
    this.#principal = early instanceof Promise ? await early : early;
    const bytes = await readBody(request, config.server.body_limit);
    this.#bytes = bytes;
    const body = parseBody(bytes, config.server.max_depth);
    this.#body = body;
    const visible = hideCredentials(headers);
    const entered = this.#door.enter(body, visible, () => this.#gateway.environment.uuid());
    const wants = this.#toWants(entered, visible);
    return this.#create(visible, entered, wants, { bytes, body, ...(credential ? { credential } : {}) });
  }

  #create(
    headers: Readonly<Record<string, string>>,
    { ask, request }: Pick<Entered, 'ask' | 'request'>,
    wants: Exchange['wants'],
    received: Pick<Exchange['inbound'], 'bytes' | 'body' | 'credential'>,
  ): PipelineExchange {
    const { config, touchesRequests } = this.#generation;
    const { method = 'POST', url: path = '/' } = this.#request;
    return new PipelineExchange({
      id: ask.requestId ?? this.#traceId,
      config,
      headers,
      ask,
      wants,
      inbound: {
        form: this.#door.form,
        method,
        path,
        touched: touchesRequests,
        request,
        remoteAddress: remoteAddress(this.#request, config.server.trusted_proxies),
        ...received,
      },
      trace: new ExchangeTrace(this.#traceId, this.#startedAt, this.#arrived, headers.traceparent),
      deadline: ask.timeoutMs === undefined ? Number.POSITIVE_INFINITY : this.#arrived + ask.timeoutMs,
      progress: (text) => this.#heartbeat?.progress(text),
    });
  }

  /** For the trace of what a valid key sent and could not be read: nothing of it runs. */
  #unread(principal: Principal): PipelineExchange {
    const wants = { stream: false, form: this.#door.form, verbose: false, usage: false, commit: undefined };
    const exchange = this.#create(hideCredentials(allHeaders(this.#request)), { ask: {}, request: { messages: [] } }, wants, { bytes: undefined });
    exchange.principal = principal;
    return exchange;
  }

  #toWants(entered: Entered, headers: Readonly<Record<string, string>>): Exchange['wants'] {
    const commit = headers['x-hermes-commit'];
    if (commit !== undefined && commit !== 'content' && commit !== 'complete')
      throw new HermesError('invalid_value', "'x-hermes-commit' must be content or complete.", { param: 'x-hermes-commit' });
    return { stream: entered.stream, form: this.#door.form, verbose: entered.extended || headers['x-hermes-verbose'] === '1', usage: entered.usage, commit };
  }

  /** The client leaving, the deadline, and a sign of life while the answer is awaited. */
  #watch(exchange: PipelineExchange): NodeJS.Timeout | undefined {
    const response = this.#response;
    const left = (): void => {
      if (!response.writableFinished) exchange.cancel(new HermesError('client_closed', 'The client closed the connection.'));
    };
    if (response.destroyed) left();
    else response.once('close', left);
    const { heartbeat_ms } = exchange.config.server;
    if (exchange.wants.stream)
      this.#heartbeat = new Heartbeat(response, heartbeat_ms, () =>
        response.writeHead(200, Object.assign(sseHeaders(), idHeaders(this.#traceId, exchange.id))),
      );
    if (exchange.deadline === Number.POSITIVE_INFINITY) return undefined;
    const cancel = (): void =>
      exchange.cancel(
        new HermesError('deadline_exceeded', "The request's own timeout passed before the answer was complete; allow more time, or ask for less."),
      );
    return setTimeout(cancel, Math.max(0, exchange.deadline - performance.now()));
  }

  async #reply(exchange: PipelineExchange, first: Answer): Promise<HermesError | undefined> {
    const { server } = exchange.config;
    const answer = exchange.wants.stream ? first : await collectAnswer(exchange, first, server.max_event_bytes);
    // Whoever joined waited less than the first caller, whose waiting the facts tell.
    this.#overheadMs = Math.max(0, performance.now() - this.#arrived - (answer.facts.waitedMs ?? 0));
    answer.facts.requestId ??= exchange.id;
    if (exchange.config.trace.capture_content) captureContent(exchange, answer, this.#gateway.rooms.guards.redact);
    if (answer.error) {
      this.#replyError(exchange, answer, answer.error);
      return answer.error;
    }
    if (exchange.wants.stream && answer.stream === undefined && isCompletion(answer.view)) answer.stream = spread(answer.view);
    if (answer.stream !== undefined) return this.#replyStream(exchange, answer);
    this.#replyWhole(exchange, answer);
    return undefined;
  }

  #replyWhole(exchange: PipelineExchange, answer: Answer): void {
    const cost = costOf(exchange);
    const bytes = toBodyBytes(exchange, answer, this.#door, () => toHermesObject(exchange, answer.facts, this.#overheadMs ?? 0));
    const headers = this.#headers(exchange, answer, { 'content-type': 'application/json' });
    if (cost !== undefined) headers['x-hermes-cost-usd'] = toDecimal(cost);
    send(this.#response, answer.status, headers, bytes);
  }

  async #replyStream(exchange: PipelineExchange, answer: Answer): Promise<HermesError | undefined> {
    const response = this.#response;
    if (!response.headersSent && !response.destroyed) response.writeHead(answer.status, this.#headers(exchange, answer, sseHeaders()));
    return replyStream({
      exchange,
      answer,
      door: this.#door,
      response,
      writeTimeoutMs: exchange.config.server.write_timeout_ms,
      hermes: () => toHermesObject(exchange, answer.facts, this.#overheadMs ?? 0),
      onFirstContent: () => {
        this.#firstTokenMs = performance.now() - this.#arrived;
      },
    });
  }

  #replyError(exchange: PipelineExchange, answer: Answer, error: HermesError): void {
    const response = this.#response;
    if (response.headersSent) {
      if (!response.writableEnded && !response.destroyed) response.end(this.#door.createWriter(exchange).end({ status: 'failed', error }, answer.facts));
      return;
    }
    const body = Buffer.from(JSON.stringify(this.#door.toError(error, answer.facts)));
    const headers = this.#headers(exchange, answer, { 'content-type': 'application/json' });
    send(response, error.status, Object.assign(headers, toErrorHeaders(error), this.#closing()), body);
  }

  /** Refused before the pipeline: only the ids are known. */
  #refuse(error: HermesError): void {
    const response = this.#response;
    if (response.headersSent) {
      response.destroy();
      return;
    }
    send(
      response,
      error.status,
      { 'content-type': 'application/json', ...idHeaders(this.#traceId, this.#requestId()), ...toErrorHeaders(error), ...this.#closing() },
      Buffer.from(JSON.stringify(this.#door.toError(error, { requestId: this.#traceId }))),
    );
  }

  /** Fills `headers`: what the upstream says of its limits, hermes' own limits, the door's, the plugins', and last what hermes answers for. */
  #headers(exchange: PipelineExchange, answer: Answer, headers: Record<string, string>): Record<string, string> {
    const own = this.#gateway.rooms.limits.headers(exchange);
    addUpstreamHeaders(headers, answer.facts, own);
    Object.assign(headers, own, this.#door.toHeaders?.(answer), answer.headers);
    toSendable(headers);
    Object.assign(headers, idHeaders(this.#traceId, exchange.id));
    addFactHeaders(headers, exchange, answer, this.#overheadMs ?? 0);
    if (this.#gateway.closing()) headers.connection = 'close';
    return headers;
  }
  #requestId(): string {
    return this.#exchange?.id ?? requestIdOf(this.#body, allHeaders(this.#request)) ?? this.#traceId;
  }
  #closing(): Record<string, string> {
    return this.#gateway.closing() ? { connection: 'close' } : {};
  }

  #ended(status: number, error: HermesError | undefined): void {
    const exchange = this.#exchange ?? (this.#principal && this.#unread(this.#principal));
    this.#gateway.ended({
      exchange,
      traceId: this.#traceId,
      requestId: this.#requestId(),
      callerRequestId: callerRequestId(this.#request.headers),
      method: this.#request.method ?? 'POST',
      path: (this.#request.url ?? '/').split('?')[0] ?? '/',
      status,
      error: error?.code,
      durationMs: performance.now() - this.#arrived,
      overheadMs: this.#overheadMs,
      firstTokenMs: this.#firstTokenMs,
    });
  }
}

/** What the upstream says of its limits, where hermes' own say nothing; of a replay it would be old. */
function addUpstreamHeaders(headers: Record<string, string>, { upstreamHeaders: told, replayed }: Facts, own: Readonly<Record<string, string>>): void {
  if (told === undefined || replayed) return;
  const limited = Object.keys(own).some((name) => name.startsWith('x-ratelimit-'));
  for (const [name, value] of Object.entries(told)) {
    if (!name.startsWith('anthropic-') && !(limited && name.startsWith('x-ratelimit-'))) headers[name] = value;
  }
}

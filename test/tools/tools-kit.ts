import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ColdStore } from '../../src/contracts/cold-store.ts';
import type { Config } from '../../src/contracts/config.ts';
import { HermesError } from '../../src/contracts/errors.ts';
import type { Answer, AnswerInit, Ask, Exchange, Facts, Principal } from '../../src/contracts/exchange.ts';
import type { HotStore } from '../../src/contracts/hot-store.ts';
import type { Batch } from '../../src/contracts/stream.ts';
import type { Metrics } from '../../src/contracts/telemetry.ts';
import { createIdempotencyRoom } from '../../src/idempotency/idempotency-room.ts';
import { ExchangeAnswer } from '../../src/pipeline/answer.ts';
import { compose } from '../../src/pipeline/compose.ts';
import type { Layer } from '../../src/pipeline/entry.ts';
import { PipelineExchange } from '../../src/pipeline/exchange.ts';
import createSqlJs from '../../src/stores/cold/sqljs.ts';
import createMemory from '../../src/stores/hot/memory.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { ExchangeTrace } from '../../src/telemetry/trace.ts';
import { createToolsRoom } from '../../src/tools/tools-room.ts';
import { batchOf, makeChunk } from '../../src/wire/batch.ts';
import type { ChatChunk, ChatCompletion, ChatMessage, ChatRequest, Delta, FunctionTool, ToolCall } from '../../src/wire/chat.ts';
import { CompletionBuilder, spread } from '../../src/wire/collect.ts';
import { allows } from '../../src/wire/patterns.ts';
import { makeConfig } from '../config/make-config.ts';
import { environment, recordLog, storeOptions } from '../stores/fixture.ts';

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
export async function until(probe: () => unknown, ms = 10_000): Promise<void> {
  for (const end = Date.now() + ms; !(await probe()); await sleep(5)) if (Date.now() > end) throw new Error(`it did not come true: ${probe}`);
}
export const user = (content: string): ChatMessage => ({ role: 'user', content });

// ---- the business side ----------------------------------------------------------------------------------------------

interface ToolHit {
  tool: string;
  headers: IncomingHttpHeaders;
  raw: string;
  body: { tool: string; request_id: string; session_id: string | null; user: string | null; params: Record<string, unknown> };
  aborted: boolean;
}
type Handler = (hit: ToolHit, response: ServerResponse, nth: number) => unknown;
export interface Toolbox {
  url: string;
  hits: ToolHit[];
  ran(tool: string): ToolHit[];
  close(): Promise<void>;
}
/** `POST /NAME` answers by `handlers[NAME]`: a value is the JSON answer; undefined: the handler answers itself, or never. */
export async function toolbox(handlers: Record<string, Handler>): Promise<Toolbox> {
  const hits: ToolHit[] = [];
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const raw = Buffer.concat(pieces).toString();
    const hit: ToolHit = { tool: (request.url ?? '').slice(1), headers: request.headers, raw, body: JSON.parse(raw), aborted: false };
    response.on('close', () => {
      hit.aborted = !response.writableFinished;
    });
    hits.push(hit);
    const value = await handlers[hit.tool]?.(hit, response, hits.filter(({ tool }) => tool === hit.tool).length);
    if (value !== undefined && !response.headersSent) response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    hits,
    ran: (tool) => hits.filter((hit) => hit.tool === tool),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

// ---- the model ------------------------------------------------------------------------------------------------------

export const call = (name: string, args: unknown, id = `call_${name}`): ToolCall => ({
  id,
  type: 'function',
  function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args) },
});
type Turn = string | ToolCall[] | { message: ChatMessage; finish?: string } | HermesError;
/** What the model says: by the exchange, and how many rounds of tools it has seen in this turn. */
export type Model = (exchange: Exchange, round: number) => Turn | Promise<Turn> | AnswerInit | Promise<Turn | AnswerInit>;

function toCompletion(turn: Exclude<Turn, HermesError>, count: number): ChatCompletion {
  const message: ChatMessage =
    typeof turn === 'string'
      ? { role: 'assistant', content: turn }
      : Array.isArray(turn)
        ? { role: 'assistant', content: null, tool_calls: turn }
        : turn.message;
  const finish = 'message' in Object(turn) ? (turn as { finish?: string }).finish : undefined;
  return {
    id: `chatcmpl-${count}`,
    object: 'chat.completion',
    created: 1_790_000_000 + count,
    model: 'mock',
    choices: [{ index: 0, message, finish_reason: finish ?? (message.tool_calls ? 'tool_calls' : 'stop') }],
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
  };
}
/** A stream of these deltas, `ms` apart; `.stop` finishes, an error breaks it off. */
export function deltas(pieces: (string | Delta | HermesError)[], ms = 0): AnswerInit {
  let at = 0;
  let stopped: HermesError | undefined;
  return {
    facts: {},
    stream: {
      async read(): Promise<Batch | null> {
        if (ms > 0) await sleep(ms);
        if (stopped) throw stopped;
        const piece = pieces[at++];
        if (piece === undefined) return null;
        if (piece instanceof HermesError) throw piece;
        const delta = typeof piece === 'string' ? (piece === '.stop' ? {} : { content: piece }) : piece;
        const finish_reason = piece === '.stop' ? 'stop' : null;
        return batchOf([makeChunk({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'mock', choices: [{ index: 0, delta, finish_reason }] })]);
      },
      cancel(reason) {
        stopped = reason;
      },
    },
  };
}

// ---- one instance ---------------------------------------------------------------------------------------------------

export interface Asked {
  ask?: Ask;
  body?: Partial<ChatRequest>;
  stream?: boolean;
  headers?: Record<string, string>;
  key?: string;
  keyTools?: string[];
  userLevel?: string;
  /** The rule's tools; null: no rule. */
  rule?: string[] | null;
  /** Leaves when this resolves. */
  leave?: Promise<unknown>;
}
export interface Told {
  status: number;
  error: HermesError | undefined;
  text: string;
  completion: ChatCompletion | undefined;
  chunks: ChatChunk[];
  facts: Facts;
  exchange: PipelineExchange;
}
export interface Instance {
  config: Config;
  hot: HotStore;
  cold: ColdStore;
  metrics: Metrics;
  /** Every request that reached the model. */
  asked: ChatRequest[];
  log: ReturnType<typeof recordLog>;
  tell(text: string | ChatMessage[], asked?: Asked): Promise<Told>;
  metric(line: string): Promise<boolean>;
  close(): Promise<void>;
}
export interface InstanceOptions {
  model: Model;
  tools?: Record<string, unknown>[];
  file?: Record<string, unknown>;
  env?: Record<string, string>;
  hot?: HotStore;
  cold?: ColdStore;
}

export function sharedHot(): HotStore {
  return Object.assign(createMemory({ keyPrefix: 'hermes:', log: recordLog(), environment }), { shared: true });
}
export async function openCold(): Promise<ColdStore> {
  const cold = createSqlJs(storeOptions('sqlite::memory:'));
  await cold.open();
  return cold;
}
export function toolOf(box: Toolbox, id: string, extra: Record<string, unknown> = {}): Record<string, unknown> {
  const parameters = { type: 'object', properties: { order_id: { type: 'string' }, amount: { type: 'number' } }, required: ['order_id'] };
  return { id, description: `the tool ${id}`, endpoint: `${box.url}/${id}`, timeout_ms: 2000, side_effects: false, parameters, ...extra };
}

/** Idempotency and tools in a real pipeline, between a caller that is an edge and a model that is a function. */
export async function instance(options: InstanceOptions): Promise<Instance> {
  const config = makeConfig({ tools: options.tools ?? [], ...options.file }, options.env);
  const hot = options.hot ?? createMemory({ keyPrefix: 'hermes:', log: recordLog(), environment });
  const cold = options.cold ?? (await openCold());
  const log = recordLog();
  const metrics = createMetrics();
  const deps = { hot, cold, log, metrics, environment };
  const idempotency = createIdempotencyRoom(deps);
  const tools = createToolsRoom({ ...deps, allows });
  tools.use(config);
  const asked: ChatRequest[] = [];
  const layer = (name: string, hooks: Layer['hooks']): Layer => ({ name, optional: false, hooks, local: undefined });
  const layers = [
    layer('idempotency', { handle: (exchange, next) => idempotency.once(exchange, next) }),
    layer('tools', { handle: async (exchange, next) => ((await tools.offer(exchange)) ? tools.loop(exchange, next) : next()) }),
  ];
  const pipeline = compose(
    layers,
    async (exchange): Promise<Answer> => {
      asked.push(exchange.request);
      const { messages } = exchange.request;
      const at = messages.findLastIndex(({ role }) => role === 'user');
      const round = messages.slice(at + 1).filter(({ tool_calls }) => tool_calls).length;
      const cancelled = new Promise<HermesError>((resolve) => exchange.onCancel(resolve));
      const said = await Promise.race([options.model(exchange, round), cancelled]);
      if (said instanceof HermesError) return new ExchangeAnswer({ error: said });
      if (typeof said === 'object' && ('stream' in said || 'body' in said || 'facts' in said)) return new ExchangeAnswer(said as AnswerInit);
      const completion = toCompletion(said as Exclude<Turn, HermesError>, asked.length);
      const facts: Facts = { model: 'fast_model', attempts: 1, usage: completion.usage as NonNullable<ChatCompletion['usage']> };
      return new ExchangeAnswer(exchange.wants.stream ? { stream: spread(completion), facts } : { body: completion, facts });
    },
    log,
  );
  return {
    config,
    hot,
    cold,
    metrics,
    asked,
    log,
    tell: async (text, options = {}) => read(pipeline, toExchange(config, text, options), options),
    metric: async (line) => (await metrics.text()).includes(line),
    close: async () => {
      await tools.close();
      await cold.close();
      await hot.close();
    },
  };
}

function toExchange(config: Config, text: string | ChatMessage[], asked: Asked): PipelineExchange {
  const { ask = {}, body = {}, stream = false, headers = {}, key = 'k', rule = [] } = asked;
  const request: ChatRequest = { model: 'auto', messages: typeof text === 'string' ? [user(text)] : text, ...(stream ? { stream } : {}), ...body };
  const id = ask.requestId ?? crypto.randomUUID();
  const exchange = new PipelineExchange({
    id,
    config,
    headers,
    ask,
    wants: { stream, form: 'openai-chat', verbose: false, usage: false, commit: undefined },
    inbound: { form: 'openai-chat', method: 'POST', path: '/v1/chat/completions', bytes: Buffer.from(JSON.stringify(request)), request, remoteAddress: '' },
    trace: new ExchangeTrace(crypto.randomUUID(), Date.now(), performance.now()),
    deadline: Number.POSITIVE_INFINITY,
    progress: () => undefined,
  });
  const all = ['*'];
  const principal: Principal = {
    id: key,
    service: 'shop',
    services: all,
    project: 'shop',
    projects: all,
    admin: false,
    models: all,
    tools: asked.keyTools ?? all,
    userLevels: all,
    priorities: all,
    passthrough: [],
  };
  exchange.principal = principal;
  exchange.caller = { service: 'shop', project: 'shop', user: ask.user, userLevel: asked.userLevel, priority: 'normal' };
  exchange.route = { rule: 'r', model: 'fast_model', tools: rule ?? undefined, explicit: rule === null };
  return exchange;
}

async function read(pipeline: (exchange: Exchange) => Promise<Answer>, exchange: PipelineExchange, { leave, stream }: Asked): Promise<Told> {
  void leave?.then(() => exchange.cancel(new HermesError('client_closed', 'The client closed the connection.')));
  const answer = await pipeline(exchange);
  const chunks: ChatChunk[] = [];
  let error = answer.error;
  const source = answer.stream ?? (stream && !error ? spread(answer.view as ChatCompletion) : undefined);
  try {
    for (let batch = await source?.read(); batch; batch = await source?.read()) chunks.push(...batch.chunks.map(({ view }) => view));
  } catch (thrown) {
    error = thrown as HermesError;
  }
  const builder = new CompletionBuilder();
  for (const chunk of chunks) builder.add(chunk);
  const completion = error ? undefined : answer.stream ? builder.build() : (answer.view as ChatCompletion);
  const content = chunks.length > 0 ? chunks.map((chunk) => chunk.choices[0]?.delta?.content ?? '').join('') : completion?.choices[0]?.message.content;
  return { status: answer.status, error, text: typeof content === 'string' ? content : '', completion, chunks, facts: answer.facts, exchange };
}

export const clientTool = (name = 'client_fn'): FunctionTool => ({ type: 'function', function: { name, parameters: { type: 'object', properties: {} } } });
/** What the model was told by tools when it was last asked. */
export function results(request: ChatRequest | undefined): string[] {
  return (request?.messages ?? []).filter(({ role }) => role === 'tool').map(({ content }) => String(content));
}

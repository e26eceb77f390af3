import failoverPlugin from '../../plugins/failover.ts';
import type { Config, FailoverConfig, ModelEntry } from '../../src/contracts/config.ts';
import { HermesError } from '../../src/contracts/errors.ts';
import type { Answer, Exchange, ModelCall, Principal, UpstreamTarget } from '../../src/contracts/exchange.ts';
import type { HotStore } from '../../src/contracts/hot-store.ts';
import type { FailureKind, UpstreamFailure } from '../../src/contracts/provider.ts';
import type { Rooms, UpstreamRoom } from '../../src/contracts/rooms.ts';
import type { Batch, ChunkStream } from '../../src/contracts/stream.ts';
import type { Environment, Log, Metrics } from '../../src/contracts/telemetry.ts';
import { ExchangeAnswer } from '../../src/pipeline/answer.ts';
import { compose } from '../../src/pipeline/compose.ts';
import type { Layer } from '../../src/pipeline/entry.ts';
import { PipelineExchange } from '../../src/pipeline/exchange.ts';
import { ExchangeTrace } from '../../src/telemetry/trace.ts';
import type { HeldBytes } from '../../src/upstream/held-bytes.ts';
import { toRefusal } from '../../src/upstream/refusal.ts';
import { createUpstreamRoom } from '../../src/upstream/upstream-room.ts';
import { batchOf, makeChunk } from '../../src/wire/batch.ts';
import type { ChatChunk, ChatRequest, Delta } from '../../src/wire/chat.ts';
import { collect } from '../../src/wire/collect.ts';

/** One try, as the scripted upstream sees it. */
export interface Tried {
  exchange: Exchange;
  upstream: string;
  model: string;
  /** How many tries of this upstream came before it. */
  earlier: number;
  at: number;
}
export type Upstream = (tried: Tried) => Answer | Promise<Answer>;

export function target(id: string, over: Partial<UpstreamTarget> = {}): UpstreamTarget {
  return {
    id,
    identity: `identity of ${id}`,
    provider: 'openai',
    modelName: `${id}-name`,
    apiBase: 'http://upstream.invalid/v1',
    apiKeyEnv: undefined,
    apiKey: undefined,
    apiVersion: undefined,
    headers: {},
    query: {},
    extraBody: {},
    maxTokens: undefined,
    contextWindow: undefined,
    timeoutMs: 5000,
    firstTokenTimeoutMs: 5000,
    supports: { vision: true, tools: true, json_schema: true },
    reasoning: undefined,
    pricedAs: id,
    weight: 1,
    quirks: {},
    ...over,
  };
}

export function model(id: string, upstreams: UpstreamTarget[], failover: Partial<FailoverConfig> = {}): ModelEntry {
  return {
    id,
    aliases: [],
    tier: undefined,
    failover: {
      strategy: 'weighted_round_robin',
      failure_threshold: 5,
      cooldown_ms: 30_000,
      max_attempts: 3,
      max_retry_after_ms: 5000,
      affinity: 'none',
      hedge_ms: 0,
      commit: 'content',
      ...failover,
    },
    upstreams,
    pricing: [],
    contextWindow: undefined,
    maxTokens: undefined,
    ownedBy: 'test',
  };
}

export function toConfig(models: ModelEntry[]): Config {
  const all = new Map(models.map((entry) => [entry.id, entry]));
  const upstreams = [...new Map(models.flatMap((entry) => entry.upstreams).map((entry) => [entry.identity, entry])).values()];
  const registry: Config['registry'] = { models: all, defaultModel: models[0]?.id ?? '', find: (name) => all.get(name), upstreams };
  const server: Partial<Config['server']> = { max_event_bytes: 1_000_000 };
  return { registry, server } as Config;
}

// ---- what an upstream may do ----------------------------------------------------------------------------------------

const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
export const says =
  (text: string): Upstream =>
  () =>
    new ExchangeAnswer({
      body: {
        id: 'c',
        object: 'chat.completion',
        created: 1,
        model: 'm',
        choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
        usage,
      },
    });

export function refusal(kind: FailureKind, status: number, retryAfterMs?: number): HermesError {
  const failure: UpstreamFailure = { kind, status, message: `boom ${status}`, type: 'some_type', code: 'some_code', param: null, retryAfterMs };
  return toRefusal(failure);
}
export const refuses =
  (kind: FailureKind, status: number, retryAfterMs?: number): Upstream =>
  () =>
    new ExchangeAnswer({ error: refusal(kind, status, retryAfterMs) });
export const fails =
  (error: HermesError): Upstream =>
  () =>
    new ExchangeAnswer({ error });
export const broken = (): HermesError => new HermesError('upstream_error', 'The model could not be reached; try again later.');
export const timedOut = (): HermesError => new HermesError('upstream_timeout', 'The model did not answer in time.');

/** Nothing comes until somebody stops it. */
export const hangs: Upstream = ({ exchange }) => new Promise((resolve) => void exchange.onCancel((error) => resolve(new ExchangeAnswer({ error }))));

export const first =
  (count: number, upstream: Upstream, then: Upstream): Upstream =>
  (tried) =>
    tried.earlier < count ? upstream(tried) : then(tried);
export const later =
  (ms: number, upstream: Upstream): Upstream =>
  async (tried) => {
    await new Promise((resolve) => setTimeout(resolve, ms));
    return tried.exchange.cancelled ? new ExchangeAnswer({ error: tried.exchange.cancelled }) : upstream(tried);
  };

export type Piece = string | Delta | HermesError | number;
/** A string is text, a delta goes as it is, a number waits that many milliseconds, an error breaks the stream, `'.stop'` finishes it. */
export const streams =
  (...pieces: Piece[]): Upstream =>
  ({ exchange }) => {
    const chunk = (delta: Delta, finish_reason: string | null = null): ChatChunk => ({
      id: 'c',
      object: 'chat.completion.chunk',
      created: 1,
      model: 'm',
      choices: [{ index: 0, delta, finish_reason }],
    });
    let at = 0;
    let stopped: HermesError | undefined;
    const stream: ChunkStream = {
      async read(): Promise<Batch | null> {
        for (;;) {
          if (stopped) throw stopped;
          const piece = pieces[at++];
          if (piece === undefined) return null;
          if (piece instanceof HermesError) throw piece;
          if (typeof piece === 'number') {
            await new Promise<void>((resolve) => {
              setTimeout(resolve, piece);
              exchange.onCancel((reason) => {
                stopped = reason;
                resolve();
              });
            });
            continue;
          }
          const made = piece === '.stop' ? chunk({}, 'stop') : chunk(typeof piece === 'string' ? { content: piece } : piece);
          return batchOf([makeChunk(made)]);
        }
      },
      cancel(reason) {
        stopped = reason ?? new HermesError('client_closed', 'gone');
      },
    };
    return new ExchangeAnswer({ stream });
  };

// ---- the house around it --------------------------------------------------------------------------------------------

export const quiet: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined, child: () => quiet };

export function gauges(): { metrics: Metrics; values: Map<string, number> } {
  const values = new Map<string, number>();
  const key = (name: string, labels: Record<string, string>): string => `${name} ${Object.values(labels).join(' ')}`;
  return {
    values,
    metrics: {
      counter: (name) => ({ inc: (labels, value = 1) => void values.set(key(name, labels), (values.get(key(name, labels)) ?? 0) + value) }),
      gauge: (name) => ({ set: (labels, value) => void values.set(key(name, labels), value) }),
      histogram: () => ({ observe: () => undefined }),
      text: async () => '',
      contentType: '',
    },
  };
}

export interface Asked {
  model?: string;
  stream?: boolean;
  commit?: 'content' | 'complete';
  session?: string;
  priority?: 'urgent' | 'normal' | 'batch';
  /** Milliseconds from now. */
  deadline?: number;
  models?: string[];
  request?: Partial<ChatRequest>;
}
export interface House {
  room: UpstreamRoom;
  tries: Tried[];
  values: Map<string, number>;
  of(upstream: string): Tried[];
  exchange(asked?: Asked): PipelineExchange;
  run(exchange: PipelineExchange): Promise<Answer>;
  /** A whole request, its stream read to the end. */
  ask(asked?: Asked): Promise<Told>;
}
export interface Told {
  answer: Answer;
  text: string | undefined;
  error: HermesError | undefined;
  exchange: PipelineExchange;
  /** It was not told at once: there was a pause, however short, or something slow. */
  waited: boolean;
}

export interface HouseOptions {
  environment?: Partial<Environment>;
  hot?: HotStore;
  /** Instead of scripted upstreams: the real step, over sockets. */
  send?: (exchange: Exchange) => Promise<Answer>;
  held?: HeldBytes;
}

/** The plugin `failover` in a real pipeline, over scripted upstreams. */
export function house(models: ModelEntry[], upstreams: Record<string, Upstream>, { environment, hot, held, send: realSend }: HouseOptions = {}): House {
  const config = toConfig(models);
  const tries: Tried[] = [];
  const { metrics, values } = gauges();
  const send = async (exchange: Exchange): Promise<Answer> => {
    const upstream = exchange.attempt?.upstream.id ?? '';
    const tried = {
      exchange,
      upstream,
      model: exchange.attempt?.model ?? '',
      earlier: tries.filter((entry) => entry.upstream === upstream).length,
      at: performance.now(),
    };
    tries.push(tried);
    if (realSend) return realSend(exchange);
    exchange.beginCall();
    const answer = (await upstreams[upstream]?.(tried)) ?? new ExchangeAnswer({ error: broken() });
    exchange.addCall({ upstream } as ModelCall);
    return answer;
  };
  const room = createUpstreamRoom({
    send,
    environment: { now: Date.now, uuid: () => '', random: () => 0.1, ...environment },
    metrics,
    log: quiet,
    ...(hot ? { hot } : {}),
    ...(held ? { held } : {}),
  });
  const hooks =
    failoverPlugin.setup?.({ rooms: { upstream: room } as Rooms, config } as Parameters<NonNullable<typeof failoverPlugin.setup>>[0], undefined) ?? {};
  const layer = { name: 'failover', optional: false, hooks, local: failoverPlugin.local } as Layer;
  const pipeline = compose([layer], (exchange) => room.send(exchange), quiet);

  const exchange = (asked: Asked = {}): PipelineExchange => {
    const request: ChatRequest = { messages: [{ role: 'user', content: 'hi' }], ...(asked.stream ? { stream: true } : {}), ...asked.request };
    const made = new PipelineExchange({
      id: 'r',
      config,
      headers: {},
      ask: asked.session === undefined ? {} : { sessionId: asked.session },
      wants: { stream: asked.stream ?? false, form: 'openai-chat', verbose: false, usage: false, commit: asked.commit },
      inbound: { form: 'openai-chat', method: 'POST', path: '/', bytes: new Uint8Array(), request, remoteAddress: '' },
      trace: new ExchangeTrace('t', Date.now(), performance.now()),
      deadline: asked.deadline === undefined ? Number.POSITIVE_INFINITY : performance.now() + asked.deadline,
      progress: () => undefined,
    });
    made.route = { rule: 'none', model: asked.model ?? config.registry.defaultModel, tools: undefined, explicit: true };
    const principal: Partial<Principal> = { models: asked.models ?? ['*'] };
    made.principal = principal as Principal;
    made.caller = { service: 's', project: 'p', user: undefined, userLevel: undefined, priority: asked.priority ?? 'normal' };
    if (asked.deadline !== undefined) setTimeout(() => made.cancel(new HermesError('deadline_exceeded', 'The deadline has passed.')), asked.deadline);
    return made;
  };
  const ask = async (asked?: Asked): Promise<Told> => {
    const made = exchange(asked);
    let waited = false;
    const turn = setImmediate(() => {
      waited = true;
    });
    const answer = await pipeline(made);
    let text: string | undefined;
    let error = answer.error;
    try {
      const completion = answer.stream ? await collect(answer.stream) : (answer.view as { choices?: { message: { content?: unknown } }[] } | undefined);
      const content = completion?.choices?.[0]?.message.content;
      text = typeof content === 'string' ? content : undefined;
    } catch (thrown) {
      error = thrown as HermesError;
    }
    clearImmediate(turn);
    return { answer, text, error, exchange: made, waited };
  };
  return { room, tries, values, of: (upstream) => tries.filter((entry) => entry.upstream === upstream), exchange, run: pipeline, ask };
}

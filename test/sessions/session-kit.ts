import sessionPlugin from '../../plugins/session.ts';
import { createContextRoom } from '../../src/context/context-room.ts';
import type { ColdStore } from '../../src/contracts/cold-store.ts';
import type { Config } from '../../src/contracts/config.ts';
import { HermesError } from '../../src/contracts/errors.ts';
import type { Answer, Exchange, Principal } from '../../src/contracts/exchange.ts';
import type { HotStore } from '../../src/contracts/hot-store.ts';
import type { Rooms, SessionsRoom } from '../../src/contracts/rooms.ts';
import type { Batch } from '../../src/contracts/stream.ts';
import { createIdempotencyRoom } from '../../src/idempotency/idempotency-room.ts';
import { ExchangeAnswer } from '../../src/pipeline/answer.ts';
import { compose } from '../../src/pipeline/compose.ts';
import type { Layer } from '../../src/pipeline/entry.ts';
import { PipelineExchange } from '../../src/pipeline/exchange.ts';
import { createSessionsRoom } from '../../src/sessions/sessions-room.ts';
import createSqlJs from '../../src/stores/cold/sqljs.ts';
import createMemory from '../../src/stores/hot/memory.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { ExchangeTrace } from '../../src/telemetry/trace.ts';
import { batchOf, makeChunk } from '../../src/wire/batch.ts';
import { type ChatChunk, type ChatCompletion, type ChatMessage, type Delta, messageText } from '../../src/wire/chat.ts';
import { spread } from '../../src/wire/collect.ts';
import { makeConfig } from '../config/make-config.ts';
import { environment, type RecordedLog, recordLog, storeOptions } from '../stores/fixture.ts';

type Content = NonNullable<ChatMessage['content']> | null;
export const user = (content: Content): ChatMessage => ({ role: 'user', content });
export const answer = (content: Content, extra: Partial<ChatMessage> = {}): ChatMessage => ({ role: 'assistant', content, ...extra });
export const system = (content: string): ChatMessage => ({ role: 'system', content });
export const call = (...ids: string[]): ChatMessage =>
  answer(null, { tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'look', arguments: '{}' } })) });
export const result = (id: string, content = `result of ${id}`): ChatMessage => ({ role: 'tool', tool_call_id: id, content });

/** One short string a message. */
export function view(messages: readonly ChatMessage[]): string[] {
  return messages.map((message) => {
    const calls = (message.tool_calls ?? []).map((one) => `+${one.id}`).join('');
    return `${message.role[0]}:${messageText(message)}${calls}`;
  });
}
/** What the model sees at the last of these questions when each was answered by `re: …`. */
export function story(...texts: string[]): string[] {
  return texts.flatMap((text, index) => (index < texts.length - 1 ? [`u:${text}`, `a:re: ${text}`] : [`u:${text}`]));
}

export type Model = (exchange: Exchange, seen: readonly ChatMessage[]) => Answer | Promise<Answer>;
export function says(message: ChatMessage, facts = {}): Answer {
  const completion: ChatCompletion = { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices: [{ index: 0, message, finish_reason: 'stop' }] };
  return new ExchangeAnswer({ body: completion, facts });
}
export function fails(error: HermesError): Answer {
  return new ExchangeAnswer({ error });
}
/** A string is text, an object a delta, a number a wait, `'.stop'` the finish, an error the break. */
export function streams(...pieces: (string | number | Delta | HermesError)[]): Answer {
  let at = 0;
  let stopped: HermesError | undefined;
  return new ExchangeAnswer({
    stream: {
      async read(): Promise<Batch | null> {
        for (;;) {
          const piece = pieces[at++];
          if (stopped) throw stopped;
          if (piece === undefined) return null;
          if (piece instanceof Error) throw piece;
          if (typeof piece === 'number') {
            await new Promise((resolve) => setTimeout(resolve, piece));
            continue;
          }
          const delta = typeof piece === 'string' ? (piece === '.stop' ? {} : { content: piece }) : piece;
          const chunk: ChatChunk = {
            id: 'c',
            object: 'chat.completion.chunk',
            created: 1,
            model: 'm',
            choices: [{ index: 0, delta, finish_reason: piece === '.stop' ? 'stop' : null }],
          };
          return batchOf([makeChunk(chunk)]);
        }
      },
      cancel(reason) {
        stopped = reason;
      },
    },
  });
}

export interface Asked {
  messages?: ChatMessage[];
  project?: string;
  stream?: boolean;
  model?: Model;
  /** The client leaves after so many batches. */
  leaveAfter?: number;
  exchange?: PipelineExchange;
  /** The caller's name for the request; with `once`. */
  /** The id of the answer that it goes on with. */
  continues?: string;
  requestId?: string;
  key?: string;
}
export interface Told {
  status: number;
  error: HermesError | undefined;
  /** What the model saw; undefined when it was not asked. */
  seen: string[] | undefined;
  messages: readonly ChatMessage[] | undefined;
  text: string;
  exchange: PipelineExchange;
}
export interface House {
  hot: HotStore;
  cold: ColdStore;
  log: RecordedLog;
  config: Config;
  room: SessionsRoom;
  exchange(session: string | undefined, asked?: Asked): PipelineExchange;
  say(session: string | undefined, text: string, asked?: Asked): Promise<Told>;
  metric(name: string, part: string): Promise<number>;
  /** What cold has of it. */
  stored(session: string, project?: string): Promise<string[]>;
  close(): Promise<void>;
}
export interface HouseOptions {
  session?: Record<string, unknown>;
  hot?: HotStore;
  cold?: ColdStore;
  /** Behind idempotency, as in the product. */
  once?: boolean;
}

export const sharedContext = createContextRoom({ cold: createSqlJs(storeOptions('sqlite::memory:')), environment, log: recordLog(), metrics: createMetrics() });

/** The plugin `session` in a real pipeline, before a model that is a function. */
export async function house({ session = {}, hot, cold, once = false }: HouseOptions = {}): Promise<House> {
  const log = recordLog();
  const metrics = createMetrics();
  const stores = storeOptions('sqlite::memory:', log);
  const cellar = cold ?? createSqlJs(stores);
  if (!cold) await cellar.open();
  const larder = hot ?? createMemory(stores);
  const config = makeConfig({ session });
  const room = createSessionsRoom({ kept: () => undefined, hot: larder, cold: cellar, context: sharedContext, log, metrics, environment });
  const hooks = sessionPlugin.setup?.({ rooms: { sessions: room } as Rooms } as Parameters<NonNullable<typeof sessionPlugin.setup>>[0], undefined) ?? {};
  const layer = { name: 'session', optional: false, hooks, local: sessionPlugin.local } as Layer;
  const idempotency = createIdempotencyRoom({ hot: larder, cold: cellar, log, metrics, environment });
  const keeping = { name: 'idempotency', optional: false, hooks: { handle: (exchange, next) => idempotency.once(exchange, next) }, local: undefined } as Layer;
  const models = new WeakMap<object, { model: Model; seen?: readonly ChatMessage[] }>();
  const pipeline = compose(
    once ? [keeping, layer] : [layer],
    async (exchange) => {
      const entry = models.get(exchange.inbound);
      if (entry === undefined) throw new Error('no model');
      entry.seen = exchange.request.messages;
      return entry.model(exchange, exchange.request.messages);
    },
    log,
  );
  const made: House = {
    hot: larder,
    cold: cellar,
    log,
    config,
    room,
    exchange(name, { messages = [], project = 'shop', stream = false, requestId, continues, key = 'k' } = {}) {
      const inbound = { form: 'openai-chat', method: 'POST', path: '/v1/chat/completions', bytes: undefined, request: { messages }, remoteAddress: '' };
      const exchange = new PipelineExchange({
        id: requestId ?? crypto.randomUUID(),
        config,
        headers: {},
        ask: {
          ...(name === undefined ? {} : { sessionId: name }),
          ...(requestId === undefined ? {} : { requestId }),
          ...(continues === undefined ? {} : { continues }),
        },
        wants: { stream, form: 'openai-chat', verbose: false, usage: false, commit: undefined },
        inbound,
        trace: new ExchangeTrace(crypto.randomUUID(), Date.now(), performance.now()),
        deadline: Number.POSITIVE_INFINITY,
        progress: () => undefined,
      });
      exchange.principal = { id: key } as Principal;
      exchange.caller = { service: 's', project, user: undefined, userLevel: undefined, priority: 'normal' };
      return exchange;
    },
    async say(name, text, asked = {}) {
      const messages = asked.messages ?? [user(text)];
      const exchange = asked.exchange ?? made.exchange(name, { ...asked, messages });
      const entry: { model: Model; seen?: readonly ChatMessage[] } = { model: asked.model ?? echo(asked.stream === true) };
      models.set(exchange.inbound, entry);
      const reply = await pipeline(exchange);
      let { error } = reply;
      let said = '';
      try {
        for (let read = 0; reply.stream; read++) {
          if (read === asked.leaveAfter) {
            const left = new HermesError('client_closed', 'The client closed the connection.');
            exchange.cancel(left);
            await reply.stream.cancel(left);
            break;
          }
          const batch = await reply.stream.read();
          if (batch === null) break;
          for (const chunk of batch.chunks) said += chunk.view.choices[0]?.delta?.content ?? '';
        }
      } catch (thrown) {
        error = thrown as HermesError;
      }
      if (!reply.stream && !error) said = messageText((reply.view as ChatCompletion).choices[0]?.message ?? user(''));
      return { status: error?.status ?? reply.status, error, seen: entry.seen && view(entry.seen), messages: entry.seen, text: said, exchange };
    },
    async metric(name, part) {
      const lines = (await metrics.text()).split('\n').filter((line) => line.startsWith(name) && line.includes(part));
      return lines.reduce((total, line) => total + Number(line.split(' ').at(-1)), 0);
    },
    async stored(name, project = 'shop') {
      return view(((await cellar.readSession(project, name, 10_000))?.messages ?? []).map(({ message }) => message));
    },
    async close() {
      await room.close();
      if (!cold) await cellar.close();
      if (!hot) await larder.close();
    },
  };
  return made;
}

/** Answers `re: <the newest question>`. */
export function echo(stream = false): Model {
  return (_exchange, seen) => {
    const newest = seen.findLast((message) => message.role === 'user');
    const message = answer(`re: ${newest ? messageText(newest) : ''}`);
    return stream
      ? new ExchangeAnswer({
          stream: spread({ id: 'c', object: 'chat.completion', created: 1, model: 'm', choices: [{ index: 0, message, finish_reason: 'stop' }] }),
        })
      : says(message);
  };
}

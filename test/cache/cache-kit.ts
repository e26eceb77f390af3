import { createCacheRoom } from '../../src/cache/cache-room.ts';
import type { Config } from '../../src/contracts/config.ts';
import { HermesError } from '../../src/contracts/errors.ts';
import type { AnswerInit, Exchange, SavedAnswer } from '../../src/contracts/exchange.ts';
import type { HotStore } from '../../src/contracts/hot-store.ts';
import { ExchangeAnswer, rawAnswer } from '../../src/pipeline/answer.ts';
import { compose } from '../../src/pipeline/compose.ts';
import { PipelineExchange } from '../../src/pipeline/exchange.ts';
import memory from '../../src/stores/hot/memory.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { ExchangeTrace } from '../../src/telemetry/trace.ts';
import type { ChatRequest } from '../../src/wire/chat.ts';
import { keepLog } from '../app-kit.ts';
import { makeConfig } from '../config/make-config.ts';

const all = ['*'];
export const environment = { now: () => Date.now(), uuid: () => crypto.randomUUID(), random: () => Math.random() };

export function memoryHot(): HotStore {
  return memory({ keyPrefix: 'hermes:', log: keepLog([]), environment });
}

export interface Asked {
  key?: string;
  headers?: Record<string, string>;
  config?: Config;
  /** The caller leaves then. */
  leave?: AbortSignal;
}

/** The cache in a real pipeline, before a model that is a function. */
export function cached(
  model: (exchange: Exchange) => AnswerInit | Promise<AnswerInit>,
  more: {
    hot?: HotStore;
    cache?: object;
    embed?: (config: Config, text: string) => Promise<Float32Array | undefined>;
    found?: (config: Config, text: string) => string[];
  } = {},
) {
  const config = makeConfig({ cache: more.cache ?? {} });
  const metrics = createMetrics();
  const embed = more.embed ?? (async () => undefined);
  const room = createCacheRoom({
    hot: more.hot ?? memoryHot(),
    log: keepLog([]),
    metrics,
    environment,
    offeredTools: () => [],
    embed,
    found: more.found ?? (() => []),
    saved: (answer) => saved.push(answer),
    rawAnswer,
  });
  const saved: SavedAnswer[] = [];
  let calls = 0;
  const pipeline = compose(
    [{ name: 'cache', optional: false, hooks: { handle: (exchange, next) => room.serve(exchange, next) }, local: undefined }],
    async (exchange) => {
      calls++;
      return new ExchangeAnswer(await model(exchange));
    },
    keepLog([]),
  );
  return {
    metrics,
    saved,
    get calls() {
      return calls;
    },
    ask(request: ChatRequest, { key = 'k', headers = {}, config: other = config, leave }: Asked = {}) {
      const exchange = new PipelineExchange({
        id: crypto.randomUUID(),
        config: other,
        headers,
        ask: {},
        wants: { stream: false, form: 'openai-chat', verbose: false, usage: false, commit: undefined },
        inbound: { form: 'openai-chat', method: 'POST', path: '/v1/chat/completions', bytes: undefined, request, remoteAddress: '' },
        trace: new ExchangeTrace(crypto.randomUUID(), 0, 0),
        deadline: Number.POSITIVE_INFINITY,
        progress: () => undefined,
      });
      leave?.addEventListener('abort', () => exchange.cancel(new HermesError('client_closed', 'The client closed the connection.')));
      exchange.principal = {
        id: key,
        service: 's',
        services: all,
        project: 'p',
        projects: all,
        admin: false,
        models: all,
        tools: all,
        userLevels: all,
        priorities: all,
        passthrough: [],
      };
      exchange.route = { rule: 'default', model: 'fast_model', tools: undefined, explicit: false };
      return pipeline(exchange);
    },
  };
}
export const cold = (content: string, more: object = {}): ChatRequest => ({ temperature: 0, messages: [{ role: 'user', content }], ...more });

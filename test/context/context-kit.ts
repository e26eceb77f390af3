import { createContextRoom } from '../../src/context/context-room.ts';
import type { Config } from '../../src/contracts/config.ts';
import type { UpstreamTarget } from '../../src/contracts/exchange.ts';
import type { FitResult } from '../../src/contracts/rooms.ts';
import { PipelineExchange } from '../../src/pipeline/exchange.ts';
import createSqlJs from '../../src/stores/cold/sqljs.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { ExchangeTrace } from '../../src/telemetry/trace.ts';
import type { ChatMessage, ChatRequest } from '../../src/wire/chat.ts';
import { makeConfig } from '../config/make-config.ts';
import { environment, recordLog, storeOptions } from '../stores/fixture.ts';

/** n tokens, in both encodings. */
export const hellos = (n: number): string => Array(n).fill('hello').join(' ');

export const room = createContextRoom({ cold: createSqlJs(storeOptions('sqlite::memory:')), environment, log: recordLog(), metrics: createMetrics() });

export function target(over: Partial<UpstreamTarget> = {}): UpstreamTarget {
  return {
    id: 'm',
    identity: 'm',
    provider: 'openai',
    modelName: 'gpt-4o',
    apiBase: '',
    apiKeyEnv: undefined,
    apiKey: undefined,
    apiVersion: undefined,
    headers: {},
    query: {},
    extraBody: {},
    maxTokens: 100,
    contextWindow: 1100,
    timeoutMs: 1,
    firstTokenTimeoutMs: 1,
    supports: { vision: true, tools: true, json_schema: true },
    reasoning: undefined,
    pricedAs: 'm',
    weight: 1,
    quirks: {},
    ...over,
  };
}

export function configOf(session: Record<string, unknown> = {}, file: Record<string, unknown> = {}): Config {
  return makeConfig({ session: { max_context_tokens: 1000, reserve_tokens: 200, ...session }, ...file });
}

export function exchangeOf(config: Config, request: ChatRequest, session = true): PipelineExchange {
  const exchange = new PipelineExchange({
    id: 'r',
    config,
    headers: {},
    ask: {},
    wants: { stream: false, form: 'openai-chat', verbose: false, usage: false, commit: undefined },
    inbound: { form: 'openai-chat', method: 'POST', path: '/', bytes: undefined, request, remoteAddress: '' },
    trace: new ExchangeTrace('t', 0, 0),
    deadline: Number.POSITIVE_INFINITY,
    progress: () => undefined,
  });
  if (session) exchange.session = { id: 's', project: 'p', historyMessages: 0, historyTokens: 0 };
  return exchange;
}

export async function fit(
  messages: ChatMessage[],
  over: { config?: Config; target?: UpstreamTarget; request?: Partial<ChatRequest>; session?: boolean } = {},
): Promise<FitResult> {
  const request: ChatRequest = { messages, ...over.request };
  return room.fit(exchangeOf(over.config ?? configOf(), request, over.session ?? true), request, over.target ?? target());
}

export async function tokensOf(messages: readonly ChatMessage[], modelName = 'gpt-4o'): Promise<number> {
  let total = 3;
  for (const message of messages) total += await room.countMessage(message, modelName);
  return total;
}

import type { Config } from '../../src/contracts/config.ts';
import type { Answer, Exchange, ModelCall, UpstreamTarget } from '../../src/contracts/exchange.ts';
import type { Provider } from '../../src/contracts/provider.ts';
import type { ChunkStream } from '../../src/contracts/stream.ts';
import { rawAnswer } from '../../src/pipeline/answer.ts';
import { PipelineExchange } from '../../src/pipeline/exchange.ts';
import anthropic from '../../src/providers/anthropic.ts';
import openai from '../../src/providers/openai.ts';
import simulator from '../../src/providers/simulator.ts';
import { ExchangeTrace } from '../../src/telemetry/trace.ts';
import { createClient } from '../../src/upstream/client.ts';
import { createSend } from '../../src/upstream/send.ts';
import { toChatEvent } from '../../src/wire/batch.ts';
import type { ChatChunk, ChatCompletion, ChatRequest } from '../../src/wire/chat.ts';
import { makeConfig } from '../config/make-config.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';

export function makeTarget(over: Partial<UpstreamTarget> = {}): UpstreamTarget {
  return {
    id: 'up',
    identity: 'identity of up',
    provider: 'openai',
    modelName: 'm',
    apiBase: 'http://127.0.0.1:9/v1',
    apiKeyEnv: 'UP_KEY',
    apiKey: 'sk-upstream-secret',
    apiVersion: undefined,
    headers: {},
    query: {},
    extraBody: {},
    maxTokens: undefined,
    contextWindow: undefined,
    timeoutMs: 2000,
    firstTokenTimeoutMs: 2000,
    supports: { vision: true, tools: true, json_schema: true },
    reasoning: undefined,
    pricedAs: 'up',
    weight: 1,
    quirks: {},
    ...over,
  };
}

export interface Sender {
  upstream: FakeUpstream;
  /** Everything that was booked. */
  booked: ModelCall[];
  exchange(request: Partial<ChatRequest>, target?: Partial<UpstreamTarget>, config?: Config): Exchange;
  send(exchange: Exchange): Promise<Answer>;
  /** One call from request to answer. */
  ask(request: Partial<ChatRequest>, target?: Partial<UpstreamTarget>): Promise<{ exchange: Exchange; answer: Answer }>;
  close(): Promise<void>;
}

const config = makeConfig();

export async function createSender(): Promise<Sender> {
  const upstream = await createFakeUpstream();
  const client = createClient();
  const booked: ModelCall[] = [];
  let ids = 0;
  const providers: Record<string, Provider> = { openai, anthropic, simulator };
  const send = createSend({
    client,
    provider: (name) => providers[name],
    environment: { now: () => Date.now(), uuid: () => `call-${++ids}`, random: () => 0.5 },
    books: { record: (call) => void booked.push(call) },
    rawAnswer,
  });
  const exchange: Sender['exchange'] = (fields, over = {}, own = config) => {
    const request: ChatRequest = { model: 'auto', messages: [{ role: 'user', content: 'hello' }], ...fields };
    const made = new PipelineExchange({
      id: 'request-1',
      config: own,
      headers: {},
      ask: {},
      wants: { stream: request.stream === true, form: 'openai-chat', verbose: false, usage: false, commit: undefined },
      inbound: { form: 'openai-chat', method: 'POST', path: '/v1/chat/completions', bytes: undefined, request, remoteAddress: '' },
      trace: new ExchangeTrace('trace-1', Date.now(), performance.now()),
      deadline: Number.POSITIVE_INFINITY,
      progress: () => undefined,
    });
    made.attempt = { number: 1, model: 'model-1', upstream: makeTarget({ apiBase: upstream.url, ...over }) };
    return made;
  };
  return {
    upstream,
    booked,
    exchange,
    send,
    async ask(request, target) {
      const one = exchange(request, target);
      return { exchange: one, answer: await send(one) };
    },
    async close() {
      await client.close();
      await upstream.close();
    },
  };
}

export interface Drained {
  chunks: ChatChunk[];
  text: string;
  finish: string | undefined;
  error: (Error & { code?: string }) | undefined;
  /** As an OpenAI client would be written to. */
  wire: string;
}

/** Reads a stream to its end or its error. */
export async function drain(stream: ChunkStream | undefined): Promise<Drained> {
  const chunks: ChatChunk[] = [];
  let wire = '';
  let error: Drained['error'];
  try {
    for (;;) {
      const batch = await stream?.read();
      if (!batch) break;
      wire +=
        batch.bytes && batch.form === 'openai-chat'
          ? Buffer.from(batch.bytes).toString()
          : batch.chunks.map((chunk) => Buffer.from(toChatEvent(chunk)).toString()).join('');
      for (const chunk of batch.chunks) chunks.push(chunk.view as ChatChunk);
    }
  } catch (thrown) {
    error = thrown as NonNullable<Drained['error']>;
  }
  const choices = chunks.flatMap((chunk) => chunk.choices ?? []);
  return {
    chunks,
    text: choices.map((choice) => choice.delta?.content ?? '').join(''),
    finish:
      choices
        .map((choice) => choice.finish_reason)
        .filter(Boolean)
        .at(-1) ?? undefined,
    error,
    wire,
  };
}

export const textOf = (answer: Answer): string | null | undefined => (answer.view as ChatCompletion).choices[0]?.message.content as string;

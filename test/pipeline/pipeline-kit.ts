import type { Exchange } from '../../src/contracts/exchange.ts';
import type { Plugin } from '../../src/contracts/plugin.ts';
import type { ChunkStream } from '../../src/contracts/stream.ts';
import { compose, type Pipeline, type Terminal } from '../../src/pipeline/compose.ts';
import type { Layer } from '../../src/pipeline/entry.ts';
import { PipelineExchange } from '../../src/pipeline/exchange.ts';
import { ExchangeTrace } from '../../src/telemetry/trace.ts';
import { batchOf, makeChunk } from '../../src/wire/batch.ts';
import type { ChatChunk, ChatCompletion } from '../../src/wire/chat.ts';
import { replay } from '../../src/wire/streams.ts';
import { keepLog, type LogLine } from '../app-kit.ts';
import { makeConfig } from '../config/make-config.ts';

const config = makeConfig();

export function makeExchange(): PipelineExchange {
  const request = { messages: [{ role: 'user' as const, content: 'hi' }] };
  return new PipelineExchange({
    id: 'request-1',
    config,
    headers: {},
    ask: {},
    wants: { stream: false, form: 'openai-chat', verbose: false, usage: false, commit: undefined },
    inbound: { form: 'openai-chat', method: 'POST', path: '/v1/chat/completions', bytes: Buffer.from('{}'), request, remoteAddress: '127.0.0.1' },
    trace: new ExchangeTrace('trace-1', 0, 0),
    deadline: Number.POSITIVE_INFINITY,
    progress: () => undefined,
  });
}

// biome-ignore lint/suspicious/noExplicitAny: plugins of every local type stand side by side here
export type AnyPlugin = Plugin<unknown, any>;

export function pipelineOf(plugins: AnyPlugin[], terminal: Terminal, lines: LogLine[] = []): Pipeline {
  const layers: Layer[] = plugins.map((plugin) => ({ name: plugin.name, optional: plugin.optional ?? false, hooks: plugin, local: plugin.local }));
  return compose(layers, terminal, keepLog(lines));
}

export const completion = (content: string): ChatCompletion => ({
  id: 'c1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
});
const piece = (choices: ChatChunk['choices']): ChatChunk => ({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', choices });

export function streamOf(...words: string[]): ChunkStream {
  return replay([
    ...words.map((content) => batchOf([makeChunk(piece([{ index: 0, delta: { content }, finish_reason: null }]))])),
    batchOf([makeChunk(piece([{ index: 0, delta: {}, finish_reason: 'stop' }]))]),
  ]);
}
/** Words, then a failure. */
export function brokenStream(error: unknown, ...words: string[]): ChunkStream {
  const inner = streamOf(...words);
  let left = words.length;
  return {
    read() {
      if (left-- > 0) return inner.read();
      throw error;
    },
    cancel: (reason) => inner.cancel(reason),
  };
}

export const whole: Terminal = async (exchange: Exchange) => {
  exchange.answer = { body: completion('whole') };
  return exchange.answer as NonNullable<Exchange['answer']>;
};
export const streaming =
  (...words: string[]): Terminal =>
  async (exchange) => {
    exchange.answer = { stream: streamOf(...words) };
    return exchange.answer as NonNullable<Exchange['answer']>;
  };

/** Reads to the end: the words, and the error if it ended with one. */
export async function drain(stream: ChunkStream): Promise<{ words: string[]; error: unknown }> {
  const words: string[] = [];
  try {
    for (let batch = await stream.read(); batch !== null; batch = await stream.read()) {
      for (const { view } of batch.chunks) for (const { delta } of view.choices) if (delta?.content) words.push(delta.content);
    }
    return { words, error: undefined };
  } catch (error) {
    return { words, error };
  }
}

import { createHash } from 'node:crypto';
import OpenAI, { toFile } from 'openai';
import { zodResponseFormat } from 'openai/helpers/zod';
import type { RunnableToolFunctionWithParse } from 'openai/lib/RunnableFunction';
import { z } from 'zod';

export interface Case {
  group: string;
  /** As the table says it. */
  name: string;
  /** What the SDK gave: events, objects, exceptions. */
  run(client: OpenAI): Promise<unknown>;
  /** What is compared when hermes' own words are others, by SPEC. */
  differs?: { why: string; compare(seen: unknown): unknown };
}

const ask = (model: string, more: object = {}): OpenAI.ChatCompletionCreateParamsNonStreaming => ({
  model,
  messages: [{ role: 'user', content: 'hi' }],
  ...more,
});
const WEATHER = { type: 'function' as const, function: { name: 'weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } } };
/** For the SDK's runner. */
export const WEATHER_TOOL: RunnableToolFunctionWithParse<{ city: string }> = {
  type: 'function',
  function: {
    name: 'weather',
    description: 'Tells the weather',
    parameters: { type: 'object', properties: { city: { type: 'string' } } },
    parse: (text) => z.object({ city: z.string() }).parse(JSON.parse(text)),
    function: ({ city }) => `${city}: 晴`,
  },
};
const Answer = z.object({ answer: z.number(), why: z.string() });

/** An exception as a program sees it. */
export async function exception(promise: Promise<unknown>): Promise<unknown> {
  try {
    return { gave: await promise };
  } catch (error) {
    if (!(error instanceof OpenAI.OpenAIError)) return { thrown: String(error) };
    const { status, type, code, param } = error as Partial<InstanceType<typeof OpenAI.APIError>>;
    return { class: error.constructor.name, message: error.message, status, type, code, param };
  }
}
async function listed<T>(events: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const event of events) all.push(event);
  return all;
}
/** Chunks up to the exception that ends them. */
async function untilError(events: AsyncIterable<unknown>): Promise<unknown> {
  const seen: unknown[] = [];
  const end = await exception(
    (async () => {
      for await (const event of events) seen.push(event);
    })(),
  );
  return { seen, end };
}
const streamed =
  (model: string, more: object = {}) =>
  async (client: OpenAI) =>
    listed(await client.chat.completions.create({ ...ask(model, more), stream: true }));
const whole =
  (model: string, more: object = {}) =>
  (client: OpenAI) =>
    client.chat.completions.create(ask(model, more));

/** Everything that the stream helper tells its listeners, in order. */
async function helped(client: OpenAI, model: string, more: object = {}): Promise<unknown> {
  const stream = client.chat.completions.stream({ ...ask(model, more), stream: true });
  const told: unknown[] = [];
  const names = [
    'chunk',
    'content.delta',
    'content.done',
    'refusal.delta',
    'refusal.done',
    'tool_calls.function.arguments.delta',
    'tool_calls.function.arguments.done',
    'logprobs.content.delta',
    'logprobs.content.done',
    'finalMessage',
  ] as const;
  for (const name of names) stream.on(name, (event: unknown) => told.push([name, structuredClone(event)]));
  const completion = await stream.finalChatCompletion();
  return { told, completion };
}

const only =
  (...fields: string[]) =>
  (seen: unknown) =>
    Object.fromEntries(fields.map((field) => [field, Reflect.get(seen as object, field)]));
const OWN_WORDS = 'the class; the words are those of hermes, which tells what it has tried';

const chat = (name: string, run: Case['run'], differs?: Case['differs']): Case => ({ group: 'chat.completions', name, run, ...(differs ? { differs } : {}) });
const errors = (name: string, model: string, differs?: Case['differs']): Case => ({
  group: 'errors',
  name,
  run: (client) => exception(client.chat.completions.create(ask(model))),
  ...(differs ? { differs } : {}),
});
const other = (name: string, run: Case['run']): Case => ({ group: 'passed through', name, run });

export const CASES: readonly Case[] = [
  chat('create', whole('text')),
  chat('create, streamed and iterated', streamed('text')),
  chat('create, streamed, `stream_options.include_usage`', streamed('usage', { stream_options: { include_usage: true } })),
  chat('create, streamed, usage not asked for', streamed('usage')),
  chat('`stream()` helper', (client) => helped(client, 'text')),
  chat('`stream()` helper, parallel tool calls in fragments', (client) => helped(client, 'fragments', { tools: [WEATHER] })),
  chat('tools', whole('weather', { tools: [WEATHER], tool_choice: 'auto', parallel_tool_calls: true })),
  chat('tools, streamed', streamed('fragments', { tools: [WEATHER] })),
  chat('`runTools()`, whole', (client) => withRunner(client, false)),
  chat('`runTools()`, streamed', (client) => withRunner(client, true)),
  chat('arguments with integers beyond 2^53', whole('big-integer', { tools: [WEATHER] })),
  chat('`parse()` with `response_format`', (client) => client.chat.completions.parse(ask('parsed', { response_format: zodResponseFormat(Answer, 'answer') }))),
  chat('`parse()` of an answer cut by its length', (client) =>
    exception(client.chat.completions.parse(ask('cut', { response_format: zodResponseFormat(Answer, 'answer') }))),
  ),
  chat('`stream()` helper with `response_format`', (client) => helped(client, 'parsed', { response_format: zodResponseFormat(Answer, 'answer') })),
  chat('a refusal', whole('refusal')),
  chat('`n: 2`', whole('several', { n: 2 })),
  chat('`n: 2`, streamed', streamed('several', { n: 2 })),
  chat('`n: 2`, `stream()` helper', (client) => helped(client, 'several', { n: 2 })),
  chat('`logprobs`', whole('logprobs', { logprobs: true, top_logprobs: 1 })),
  chat('`logprobs`, `stream()` helper', (client) => helped(client, 'logprobs', { logprobs: true, top_logprobs: 1 })),
  chat('an abort after the first chunk', aborted),
  chat('leaving the loop after the first chunk', async (client) => {
    for await (const chunk of await client.chat.completions.create({ ...ask('slow'), stream: true })) return chunk;
    return undefined;
  }),
  errors('400 with code and param', 'error-400'),
  errors('400, content policy', 'error-policy'),
  errors('422', 'error-422'),
  errors('400 `context_length_exceeded`', 'error-context', {
    why: 'all but the message, which may add numbers, and the param',
    compare: only('class', 'status', 'type', 'code'),
  }),
  errors('429', 'error-429', { why: OWN_WORDS, compare: only('class', 'status', 'code') }),
  errors('500', 'error-500', { why: OWN_WORDS, compare: only('class') }),
  errors('503', 'error-503', { why: OWN_WORDS, compare: only('class', 'status') }),
  {
    group: 'errors',
    name: 'a wrong key',
    run: (client) => exception(client.withOptions({ apiKey: 'sk-wrong' }).chat.completions.create(ask('text'))),
    differs: { why: 'the class, the status, the code; it is hermes that refuses', compare: only('class', 'status', 'code') },
  },
  errors('a model that does not exist', 'nope', {
    why: 'all but the message, which lists what is there, and the param',
    compare: only('class', 'status', 'type', 'code'),
  }),
  {
    group: 'errors',
    name: 'an error event in a stream',
    run: async (client) => untilError(await client.chat.completions.create({ ...ask('broken'), stream: true })),
    differs: {
      why: 'chunks and class; the words are those of hermes',
      compare: (seen) => ({ ...(seen as object), end: only('class')((seen as { end: unknown }).end) }),
    },
  },
  { group: 'errors', name: "the SDK's own time-out", run: (client) => exception(client.chat.completions.create(ask('silent'), { timeout: 60 })) },
  other('embeddings, base64 as the SDK asks', (client) => client.embeddings.create({ model: 'text-embedding-3-small', input: 'hi' })),
  other('embeddings, floats', (client) => client.embeddings.create({ model: 'text-embedding-3-small', input: 'hi', encoding_format: 'float' })),
  other('files: upload, list, content, delete', files),
  other('audio: speech, binary', async (client) =>
    digest(await (await client.audio.speech.create({ model: 'tts-1', voice: 'alloy', input: 'hi' })).arrayBuffer()),
  ),
  other('audio: transcription, multipart', async (client) =>
    client.audio.transcriptions.create({ model: 'whisper-1', file: await toFile(Buffer.alloc(5000, 7), 'a.wav') }),
  ),
  other('images', (client) => client.images.generate({ model: 'gpt-image-1', prompt: 'a cat' })),
  other('moderations', (client) => client.moderations.create({ input: 'hi' })),
  other('legacy completions', (client) => client.completions.create({ model: 'gpt-3.5-turbo-instruct', prompt: 'hi' })),
  other('batches, an empty page', async (client) => listed(client.batches.list())),
  other('responses', (client) => client.responses.create({ model: 'gpt-conf', input: 'hi' })),
  other('responses, streamed: named events', async (client) => listed(await client.responses.create({ model: 'gpt-conf', input: 'hi', stream: true }))),
  other('responses, `stream()` helper', async (client) => client.responses.stream({ model: 'gpt-conf', input: 'hi' }).finalResponse()),
  other('responses, retrieve', (client) => client.responses.retrieve('resp_fake')),
  other('a path that the vendor does not know', (client) => exception(client.get('/nowhere'))),
];

async function aborted(client: OpenAI): Promise<unknown> {
  const controller = new AbortController();
  const stream = await client.chat.completions.create({ ...ask('slow'), stream: true }, { signal: controller.signal });
  const seen: unknown[] = [];
  const end = await exception(
    (async () => {
      for await (const chunk of stream) {
        seen.push(chunk);
        controller.abort();
      }
    })(),
  );
  return { seen, end };
}

async function withRunner(client: OpenAI, stream: boolean): Promise<unknown> {
  const told: unknown[] = [];
  const tell = (name: string) => (event: unknown) => void told.push([name, structuredClone(event)]);
  const request = { model: 'weather', messages: [{ role: 'user' as const, content: 'hi' }], tools: [WEATHER_TOOL] };
  if (stream) {
    const runner = client.chat.completions.runTools({ ...request, stream: true });
    runner.on('message', tell('message')).on('functionToolCall', tell('call')).on('functionToolCallResult', tell('result')).on('chunk', tell('chunk'));
    return { content: await runner.finalContent(), told };
  }
  const runner = client.chat.completions.runTools(request);
  runner.on('message', tell('message')).on('functionToolCall', tell('call')).on('functionToolCallResult', tell('result'));
  return { content: await runner.finalContent(), told };
}

async function files(client: OpenAI): Promise<unknown> {
  const file = await client.files.create({ file: await toFile(Buffer.from('{"a":1}\n'.repeat(100)), 'a.jsonl'), purpose: 'assistants' });
  const content = digest(await (await client.files.content(file.id)).arrayBuffer());
  return { file, content, deleted: await client.files.delete(file.id), names: (await listed(client.files.list())).map(({ id }) => id) };
}

function digest(bytes: ArrayBuffer): string {
  return `${bytes.byteLength} ${createHash('sha256').update(Buffer.from(bytes)).digest('hex')}`;
}

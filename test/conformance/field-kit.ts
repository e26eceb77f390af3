import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { events, type Reply, type RunningApp, startApp } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';

export interface Raw {
  url: string;
  requests: { headers: http.IncomingHttpHeaders; raw: string; path: string }[];
  /** What the next answers are, by model. */
  answers: Map<string, (response: http.ServerResponse) => void | Promise<void>>;
  close(): Promise<void>;
}
/** A server that says exactly the bytes it is told to say, and asks for nothing. */
export async function createRaw(): Promise<Raw> {
  const requests: Raw['requests'] = [];
  const answers: Raw['answers'] = new Map();
  const server = http.createServer(async (request, response) => {
    let raw = '';
    try {
      for await (const part of request) raw += part;
    } catch {
      return;
    }
    requests.push({ headers: request.headers, raw, path: request.url ?? '' });
    response.on('error', () => undefined);
    const { model = '' } = (raw.startsWith('{') ? JSON.parse(raw) : {}) as { model?: string };
    await (answers.get(model) ?? ((one) => void one.writeHead(200, { 'content-type': 'application/json' }).end('{}')))(response);
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    answers,
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

/** An event stream of these pieces, with a rest between them. */
export const sse =
  (pieces: readonly (string | Buffer)[], { restMs = 0, cut = false } = {}) =>
  async (response: http.ServerResponse): Promise<void> => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const piece of pieces) {
      if (response.destroyed) return;
      response.write(piece);
      if (restMs > 0) await sleep(restMs);
    }
    if (!cut) return void response.end();
    await sleep(20);
    response.destroy();
  };

export interface Field {
  app: RunningApp;
  fake: FakeUpstream;
  raw: Raw;
  close(): Promise<void>;
}
/** `names` are models of the strict fake, `openai` and `anthropic` names of the raw server's in either form. */
export async function openField(
  lists: { strict?: string[]; openai?: string[]; anthropic?: string[] },
  { server = {}, ...config }: { server?: object; [block: string]: unknown } = {},
): Promise<Field> {
  const [fake, raw] = [await createFakeUpstream(), await createRaw()];
  const plain = { failover: { max_attempts: 1 }, pricing: { input_per_million: 1, output_per_million: 2 } };
  const models = [
    ...(lists.strict ?? []).map((id) => ({ id, provider: 'openai', model_name: id, api_base: fake.url, api_key_env: 'UP_KEY', ...plain })),
    ...(lists.openai ?? []).map((id) => ({ id, provider: 'openai', model_name: id, api_base: `${raw.url}/v1`, api_key_env: 'UP_KEY', ...plain })),
    ...(lists.anthropic ?? []).map((id) => ({ id, provider: 'anthropic', model_name: id, api_base: raw.url, api_key_env: 'UP_KEY', ...plain })),
  ];
  const app = await startApp({ models, server: { drain_timeout_ms: 1000, ...server }, ...config }, { env: { UP_KEY: 'sk-up' } });
  return {
    app,
    fake,
    raw,
    async close() {
      await app.stop();
      await Promise.all([fake.close(), raw.close()]);
    },
  };
}

export interface Told {
  text: string;
  finish: unknown[];
  errors: unknown[];
  done: boolean;
  calls: { id?: string; function?: { name?: string; arguments?: string } }[];
  usage: Record<string, unknown> | undefined;
  hermes: { tokens: Record<string, unknown>; [field: string]: unknown } | undefined;
}
/** What a streamed answer told its client. */
export function toldIn(reply: Reply): Told {
  const told: Told = { text: '', finish: [], errors: [], done: false, calls: [], usage: undefined, hermes: undefined };
  // A space after the colon may stand there or not.
  for (const event of events({ ...reply, text: reply.text.replaceAll(/^data:(?! )/gm, 'data: ') })) {
    if (event === '[DONE]') {
      told.done = true;
      continue;
    }
    const chunk = event as {
      choices?: { delta?: { content?: string; tool_calls?: (Told['calls'][number] & { index: number })[] }; finish_reason?: string }[];
      error?: unknown;
      usage?: Told['usage'];
      hermes?: Told['hermes'];
    };
    if (chunk.error) told.errors.push(chunk.error);
    if (chunk.usage) told.usage = chunk.usage;
    if (chunk.hermes) told.hermes = chunk.hermes;
    for (const { delta, finish_reason } of chunk.choices ?? []) {
      told.text += delta?.content ?? '';
      if (finish_reason) told.finish.push(finish_reason);
      for (const { index, ...call } of delta?.tool_calls ?? []) {
        const before = told.calls[index];
        if (before?.function) before.function.arguments = `${before.function.arguments ?? ''}${call.function?.arguments ?? ''}`;
        else told.calls[index] = structuredClone(call);
      }
    }
  }
  return told;
}

const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_790_000_000, model: 'm' };
export const piece = (delta: object, finish_reason: string | null = null, more: object = {}): object => ({
  ...head,
  choices: [{ index: 0, delta, finish_reason }],
  ...more,
});
export const bare = (more: object): object => ({ ...head, choices: [], ...more });
export const event = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
export const DONE = 'data: [DONE]\n\n';
/** Anthropic's events, named. */
export const named = (...list: ({ type: string } & Record<string, unknown>)[]): string =>
  list.map((one) => `event: ${one.type}\ndata: ${JSON.stringify(one)}\n\n`).join('');
export const messageStart = (usage: object): { type: string } & Record<string, unknown> => ({
  type: 'message_start',
  message: { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude', content: [], stop_reason: null, stop_sequence: null, usage },
});
export const textBlock = (...texts: string[]): ({ type: string } & Record<string, unknown>)[] => [
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  ...texts.map((text) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })),
  { type: 'content_block_stop', index: 0 },
];
export const messageEnd = (usage: object, stop_reason = 'end_turn'): ({ type: string } & Record<string, unknown>)[] => [
  { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage },
  { type: 'message_stop' },
];

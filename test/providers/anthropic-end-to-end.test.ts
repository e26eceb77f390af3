import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type App, createApp } from '../../src/app.ts';
import { createLog } from '../../src/telemetry/log.ts';

const KEY = 'sk-end-to-end-0123456789abcdef';
type Event = { type: string } & Record<string, unknown>;
const START: Event = {
  type: 'message_start',
  message: { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-up', content: [], usage: { input_tokens: 3, output_tokens: 1 } },
};
const TEXT: Event[] = [
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'half' } },
];
const stop = (reason: string): Event[] => [
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: reason }, usage: { output_tokens: 2 } },
  { type: 'message_stop' },
];
const OVERLOADED: Event = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };

function events(response: ServerResponse, list: Event[]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const event of list) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  response.end();
}
const message = (response: ServerResponse, content: object[], stop_reason: string, more: object = {}): unknown =>
  response.writeHead(200, { 'content-type': 'application/json' }).end(
    JSON.stringify({
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'claude-up',
      content,
      stop_reason,
      usage: { input_tokens: 3, output_tokens: 2 },
      ...more,
    }),
  );

/** What each upstream model does. */
const BEHAVIOURS: Record<string, (response: ServerResponse, stream: boolean) => unknown> = {
  good: (response, stream) =>
    stream ? events(response, [START, ...TEXT, ...stop('end_turn')]) : message(response, [{ type: 'text', text: 'half' }], 'end_turn'),
  'dies-before-content': (response) => events(response, [START, { type: 'ping' }, OVERLOADED]),
  'dies-first': (response) => events(response, [OVERLOADED]),
  'dies-in-the-middle': (response) => events(response, [START, ...TEXT, OVERLOADED]),
  'cut-in-the-middle': (response) => events(response, [START, ...TEXT]),
  'cut-in-arguments': (response) =>
    events(response, [
      START,
      { type: 'content_block_start', index: 0, content_block: { type: 'tool_use', id: 't', name: 'f', input: {} } },
      { type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: '{"a' } },
    ]),
  refuses: (response, stream) =>
    stream
      ? events(response, [
          START,
          { type: 'message_delta', delta: { stop_reason: 'refusal', stop_details: { type: 'refusal', explanation: 'No.' } }, usage: { output_tokens: 2 } },
          { type: 'message_stop' },
        ])
      : message(response, [], 'refusal', { stop_details: { type: 'refusal', explanation: 'No.' } }),
  'without-money': (response) =>
    response
      .writeHead(400, { 'content-type': 'application/json' })
      .end(JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message: 'Your credit balance is too low' } })),
  detailed: (response) =>
    response.writeHead(400, { 'content-type': 'application/json' }).end(
      JSON.stringify({
        type: 'error',
        error: { type: 'invalid_request_error', message: 'No.', details: { error_code: 'no_such_beta', see: 'http://10.0.0.1/x', tries: [1] } },
      }),
    ),
  'too-detailed': (response) =>
    response.writeHead(400, { 'content-type': 'application/json' }).end(
      JSON.stringify({
        type: 'error',
        error: { type: 'invalid_request_error', message: 'No.', details: Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`m${index}`, index])) },
      }),
    ),
  'too-long': (response) =>
    response
      .writeHead(400, { 'content-type': 'application/json' })
      .end(JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message: 'prompt is too long: 9 tokens > 5 maximum' } })),
};

let directory: string;
let upstream: Server;
let app: App;
before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'anthropic-'));
  upstream = createServer(async (request, response) => {
    let raw = '';
    for await (const part of request) raw += part;
    const { model, stream } = JSON.parse(raw);
    BEHAVIOURS[model]?.(response, stream === true);
  });
  await new Promise<void>((done) => upstream.listen(0, '127.0.0.1', done));
  const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
  const model = (id: string, extra = ''): string =>
    `  - { id: ${id}, provider: anthropic, model_name: ${id}, api_base: "${url}", api_key_env: ANT_KEY${extra} }`;
  const pair = (id: string): string =>
    `  - { id: ${id}-then-good, failover: { strategy: priority, failure_threshold: 50, upstreams: [{ target: ${id}, weight: 1 }, { target: good, weight: 1 }] } }`;
  const text = `
server: { host: 127.0.0.1, port: 0 }
auth: { keys: [{ id: main, key_env: MAIN_KEY, service: s, services: ["*"], project: p, projects: ["*"], models: ["*"], tools: ["*"], user_levels: ["*"] }] }
models:
${Object.keys(BEHAVIOURS)
  .map((id) => model(id))
  .join('\n')}
${Object.keys(BEHAVIOURS)
  .filter((id) => id !== 'good')
  .map(pair)
  .join('\n')}
default_model: good
session: { storage: { hot_backend: memory, cold_backend: sqlite } }
`;
  const env = { MAIN_KEY: KEY, ANT_KEY: 'sk-ant', DATABASE_URL: 'sqlite::memory:' };
  app = await createApp({ load: { file: join(directory, 'hermes.yaml'), text, env, cwd: directory }, createLog: () => createLog('silent') });
});
after(async () => {
  await app.stop();
  upstream.closeAllConnections();
  upstream.close();
  rmSync(directory, { recursive: true, force: true });
});

interface Told {
  status: number;
  headers: Headers;
  raw: string;
  /** The data of a stream's events, or the one body. */
  data: Record<string, unknown>[];
  text: string;
}
async function ask(model: string, stream: boolean, more: object = {}, headers: Record<string, string> = {}): Promise<Told> {
  const body = JSON.stringify({ model, stream, messages: [{ role: 'user', content: 'hi' }], ...more });
  const response = await fetch(`http://127.0.0.1:${app.port}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...headers },
    body,
  });
  const raw = await response.text();
  const streamed = response.headers.get('content-type')?.includes('event-stream');
  const data = (
    streamed
      ? raw
          .split('\n\n')
          .filter((line) => line.startsWith('data: {'))
          .map((line) => line.slice(6))
      : [raw]
  ).map((line) => JSON.parse(line));
  const choices = data.flatMap((one) => (Array.isArray(one.choices) ? one.choices : []));
  return {
    status: response.status,
    headers: response.headers,
    raw,
    data,
    text: choices.map((choice) => (choice.delta ?? choice.message)?.content ?? '').join(''),
  };
}
const errors = (told: Told): unknown[] => told.data.filter((one) => one.error);

describe('failover around an Anthropic upstream', () => {
  for (const id of ['dies-before-content', 'dies-first', 'without-money'])
    test(`${id}: the next one answers, unseen`, async () => {
      const told = await ask(`${id}-then-good`, true);
      assert.deepEqual([told.status, told.text, errors(told)], [200, 'half', []], told.raw);
      assert.ok(told.raw.endsWith('data: [DONE]\n\n'));
      assert.equal(told.data.filter((one) => JSON.stringify(one).includes('"role"')).length, 1);
      assert.equal(told.headers.get('x-hermes-attempts'), '2');
    });

  for (const id of ['dies-in-the-middle', 'cut-in-the-middle', 'cut-in-arguments'])
    test(`${id}: one error, no second answer, no end`, async () => {
      const told = await ask(`${id}-then-good`, true);
      assert.deepEqual([errors(told).length, told.raw.includes('[DONE]'), told.raw.includes('"finish_reason":"')], [1, false, false], told.raw);
      assert.ok(!told.text.includes('halfhalf'));
    });

  test('a refusal goes to the client as it is, never around it', async () => {
    for (const stream of [false, true]) {
      const told = await ask('refuses-then-good', stream);
      assert.equal(told.headers.get('x-hermes-attempts'), '1');
      assert.ok(told.raw.includes('"finish_reason":"content_filter"') && told.raw.includes('"refusal":"No."'), told.raw);
    }
  });

  test('an exceeded window is 400 context_length_exceeded, money is not the caller’s fault', async () => {
    const long = await ask('too-long', false);
    assert.deepEqual([long.status, Reflect.get(Object(long.data[0]?.error), 'code')], [400, 'context_length_exceeded']);
    const poor = await ask('without-money', false);
    assert.deepEqual([poor.status, Reflect.get(Object(poor.data[0]?.error), 'code')], [502, 'upstream_quota_exhausted']);
  });
});

describe('the details of a refusal', () => {
  const told = async (model: string): Promise<unknown> => {
    const response = await fetch(`http://127.0.0.1:${app.port}/v1/messages`, {
      method: 'POST',
      headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
      body: JSON.stringify({ model, max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] }),
    });
    assert.equal(response.status, 400);
    return Reflect.get(Object(await response.json()), 'error');
  };
  const NO = { type: 'invalid_request_error', message: 'No.' };

  test('reach an Anthropic client, without addresses', async () =>
    assert.deepEqual(await told('detailed'), { ...NO, details: { error_code: 'no_such_beta', see: '[address]', tries: [1] } }));
  test('stay behind where they are too long', async () => assert.deepEqual(await told('too-detailed'), NO));
  test("are no part of OpenAI's form", async () => {
    const { status, data } = await ask('detailed', false);
    assert.deepEqual([status, Object.keys(Object(data[0]?.error)).sort()], [400, ['code', 'message', 'param', 'type']]);
  });
});

describe('what was lost in translation is told', () => {
  for (const stream of [false, true])
    test(`dropped parameters and the upstream's own finish, ${stream ? 'streamed' : 'whole'}`, async () => {
      const told = await ask('refuses', stream, { seed: 1, temperature: 1.5, logprobs: true, n: 1 }, { 'x-hermes-verbose': '1' });
      const hermes = Object(told.data.findLast((one) => one.hermes)?.hermes);
      assert.deepEqual([hermes.dropped_params.sort(), hermes.upstream_finish_reason], [['logprobs', 'seed', 'temperature'], 'refusal']);
    });
  test('n above 1 is refused', async () => assert.equal((await ask('good', false, { n: 2 })).status, 400));
  test('an answer has the time at which it was made', async () => {
    for (const stream of [false, true])
      for (const one of (await ask('good', stream)).data) assert.ok(Math.abs(Number(one.created) - Date.now() / 1000) < 60, JSON.stringify(one));
  });
});

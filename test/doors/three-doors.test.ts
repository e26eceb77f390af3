import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { type App, createApp } from '../../src/app.ts';
import { createLog } from '../../src/telemetry/log.ts';
import type { ToolCall } from '../../src/wire/chat.ts';
import { createFakeUpstream, type FakeUpstream, type ReceivedCall, USAGE } from '../fake-upstream.ts';
import { type AnthropicCall, createFakeAnthropic, type FakeAnthropic } from '../providers/fake-anthropic.ts';

const KEY = 'sk-three-doors-0123456789abcdef';
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const SCHEMA = { type: 'object' as const, properties: { city: { type: 'string' } } };

let directory: string;
let openaiFake: FakeUpstream;
let anthropicFake: FakeAnthropic;
let app: App;
let base: string;

/** `#tools` asks for two calls, and says what came of them; `#think` thinks first. */
function anthropicAnswer({ body, raw }: AnthropicCall): ({ type: string } & Record<string, unknown>)[] {
  const thinks = raw.includes('#think') ? [{ type: 'thinking', thinking: '先想一想', signature: `sig-${body.messages.length}` }] : [];
  const results = body.messages.at(-1)?.content.filter((block) => block.type === 'tool_result') ?? [];
  if (results.length > 0) return [...thinks, { type: 'text', text: `got ${results.map((block) => block.content).join('+')}` }];
  if (!raw.includes('#tools')) return [...thinks, { type: 'text', text: 'Hello, 世界' }];
  return [
    ...thinks,
    { type: 'text', text: 'let me look' },
    ...['北京', '上海'].map((city, index) => ({ type: 'tool_use', id: `toolu_${index}`, name: 'get_weather', input: { city } })),
  ];
}
function openaiScript(call: ReceivedCall): { content?: string; reasoning_content?: string; tool_calls?: ToolCall[] } {
  const results = call.body.messages.filter((message) => message.role === 'tool').map((message) => message.content);
  const thinks = call.raw.includes('#think') ? { reasoning_content: '先想一想' } : {};
  if (results.length > 0) return { ...thinks, content: `got ${results.join('+')}` };
  if (!call.raw.includes('#tools')) return { ...thinks, content: 'Hello, 世界' };
  const tool_calls = ['北京', '上海'].map((city, index) => ({
    id: `call_${index}`,
    type: 'function',
    function: { name: 'get_weather', arguments: JSON.stringify({ city }) },
  }));
  return { ...thinks, content: 'let me look', tool_calls };
}

before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'three-doors-'));
  openaiFake = await createFakeUpstream();
  openaiFake.on('gpt-fake', (reply, call) => {
    const { reasoning_content, ...message } = openaiScript(call);
    if (!call.body.stream || reasoning_content === undefined) return reply.completion({ ...message, ...(reasoning_content ? { reasoning_content } : {}) });
    const calls = (message.tool_calls ?? []).map((one, index) => ({ tool_calls: [{ index, ...one }] }));
    const finish = calls.length > 0 ? 'tool_calls' : 'stop';
    return reply.stream([{ role: 'assistant', content: '' }, { reasoning_content }, { content: message.content ?? '' }, ...calls, finish, { usage: USAGE }]);
  });
  anthropicFake = await createFakeAnthropic(anthropicAnswer);
  const text = `
server: { host: 127.0.0.1, port: 0 }
auth: { keys: [{ id: main, key_env: MAIN_KEY, service: s, services: ["*"], project: p, projects: ["*"], models: ["*"], tools: ["*"], user_levels: ["*"] }] }
models:
  - { id: gpt, provider: openai, model_name: gpt-fake, api_base: "${openaiFake.url}", api_key_env: UP_KEY, reasoning: send }
  - { id: claude, provider: anthropic, model_name: claude-sonnet-4-5, api_base: "${anthropicFake.url}", api_key_env: ANT_KEY }
  - { id: claude-new, provider: anthropic, model_name: claude-opus-4-7, api_version: "2026-10-21", api_base: "${anthropicFake.url}/v1", api_key_env: ANT_KEY }
default_model: gpt
session: { storage: { hot_backend: memory, cold_backend: sqlite } }
`;
  const env = { MAIN_KEY: KEY, UP_KEY: 'sk-up', ANT_KEY: 'sk-ant', DATABASE_URL: 'sqlite::memory:' };
  app = await createApp({
    load: { file: join(directory, 'hermes.yaml'), text, env, cwd: directory },
    createLog: () => createLog('silent'),
  });
  base = `http://127.0.0.1:${app.port}`;
});
after(async () => {
  await app.stop();
  await Promise.all([openaiFake.close(), anthropicFake.close()]);
  rmSync(directory, { recursive: true, force: true });
});
const openai = (): OpenAI => new OpenAI({ apiKey: KEY, baseURL: `${base}/v1`, maxRetries: 0, timeout: 30_000 });
const anthropic = (): Anthropic => new Anthropic({ apiKey: KEY, baseURL: base, maxRetries: 0, timeout: 30_000 });

/** One client's way of asking: gives text, thinking and the calls, and can go on with results. */
interface Turn {
  text: string;
  thinking: string;
  calls: [string, unknown][];
  answer(results: string[]): Promise<Turn>;
}
type Ask = (model: string, text: string, options: { stream: boolean; image?: boolean; tools?: boolean; think?: boolean }) => Promise<Turn>;

const chat: Ask = async (model, text, { stream, image, tools, think }) => {
  const run = async (messages: OpenAI.ChatCompletionMessageParam[]): Promise<Turn> => {
    const request = {
      model,
      messages,
      ...(tools ? { tools: [{ type: 'function' as const, function: { name: 'get_weather', parameters: SCHEMA } }] } : {}),
      ...(think ? { reasoning_effort: 'low' as const } : {}),
    };
    const client = openai();
    const completion = stream ? await client.chat.completions.stream(request).finalChatCompletion() : await client.chat.completions.create(request);
    const message = completion.choices[0]?.message;
    assert.ok(message);
    assert.ok((completion.usage?.total_tokens ?? 15) > 0);
    const calls = (message.tool_calls ?? []).flatMap((call) => (call.type === 'function' ? [call] : []));
    return {
      text: message.content ?? '',
      thinking: String(Reflect.get(message, 'reasoning_content') ?? ''),
      calls: calls.map((call) => [call.function.name, JSON.parse(call.function.arguments)]),
      answer: (results) =>
        run([...messages, message, ...calls.map((call, index) => ({ role: 'tool' as const, tool_call_id: call.id, content: results[index] ?? '' }))]),
    };
  };
  const picture = { type: 'image_url' as const, image_url: { url: `data:image/png;base64,${PNG}` } };
  return run([
    { role: 'system', content: 'Be kind.' },
    { role: 'user', content: image ? [{ type: 'text', text }, picture] : text },
  ]);
};

const messages: Ask = async (model, text, { stream, image, tools, think }) => {
  const run = async (turns: Anthropic.MessageParam[]): Promise<Turn> => {
    const request = {
      model,
      max_tokens: 4000,
      system: 'Be kind.',
      messages: turns,
      ...(tools ? { tools: [{ name: 'get_weather', input_schema: SCHEMA }] } : {}),
      ...(think ? { thinking: { type: 'enabled' as const, budget_tokens: 2000 } } : {}),
    };
    const client = anthropic();
    const message = stream ? await client.messages.stream(request).finalMessage() : await client.messages.create(request);
    const calls = message.content.filter((block) => block.type === 'tool_use');
    assert.equal(message.stop_reason, calls.length > 0 ? 'tool_use' : 'end_turn');
    assert.ok(message.usage.output_tokens > 0);
    return {
      text: message.content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
      thinking: message.content.map((block) => (block.type === 'thinking' ? block.thinking : '')).join(''),
      calls: calls.map((block) => [block.name, block.input]),
      answer: (results) =>
        run([
          ...turns,
          { role: 'assistant', content: message.content },
          { role: 'user', content: calls.map((block, index) => ({ type: 'tool_result' as const, tool_use_id: block.id, content: results[index] ?? '' })) },
        ]),
    };
  };
  const picture = { type: 'image' as const, source: { type: 'base64' as const, media_type: 'image/png' as const, data: PNG } };
  return run([{ role: 'user', content: image ? [{ type: 'text', text }, picture] : text }]);
};

const responses: Ask = async (model, text, { stream, image, tools, think }) => {
  const run = async (input: OpenAI.Responses.ResponseInput): Promise<Turn> => {
    const request = {
      model,
      input,
      instructions: 'Be kind.',
      store: false,
      ...(tools ? { tools: [{ type: 'function' as const, name: 'get_weather', parameters: SCHEMA, strict: false }] } : {}),
      ...(think ? { reasoning: { effort: 'low' as const } } : {}),
    };
    const client = openai();
    const response: OpenAI.Responses.Response = stream ? await client.responses.stream(request).finalResponse() : await client.responses.create(request);
    assert.equal(response.status, 'completed');
    assert.ok((response.usage?.total_tokens ?? 0) > 0);
    const calls = response.output.flatMap((item) => (item.type === 'function_call' ? [item] : []));
    return {
      text: response.output_text,
      thinking: response.output.map((item) => (item.type === 'reasoning' ? item.summary.map((part) => part.text).join('') : '')).join(''),
      calls: calls.map((item) => [item.name, JSON.parse(item.arguments)]),
      answer: (results) =>
        run([
          ...input,
          ...(response.output as OpenAI.Responses.ResponseInput),
          ...calls.map((item, index) => ({ type: 'function_call_output' as const, call_id: item.call_id, output: results[index] ?? '' })),
        ]),
    };
  };
  const picture = { type: 'input_image' as const, detail: 'auto' as const, image_url: `data:image/png;base64,${PNG}` };
  return run([{ role: 'user', content: image ? [{ type: 'input_text', text }, picture] : text }]);
};

const lastCall = (model: string): string => (model === 'gpt' ? openaiFake.calls.at(-1)?.raw : anthropicFake.calls.at(-1)?.raw) ?? '';

for (const [door, ask] of [
  ['chat', chat],
  ['messages', messages],
  ['responses', responses],
] as const) {
  for (const model of ['gpt', 'claude', 'claude-new']) {
    describe(`the SDK of ${door} in front of ${model}`, () => {
      for (const stream of [false, true]) {
        const how = stream ? 'streamed' : 'whole';
        test(`text, ${how}`, async () => {
          assert.equal((await ask(model, 'hi', { stream })).text, 'Hello, 世界');
          assert.ok(lastCall(model).includes('Be kind.'));
        });
        test(`an image, ${how}`, async () => {
          assert.equal((await ask(model, 'see', { stream, image: true })).text, 'Hello, 世界');
          assert.ok(lastCall(model).includes(PNG));
        });
        for (const think of [false, true])
          test(`parallel tools and their results${think ? ', thinking' : ''}, ${how}`, async () => {
            const asked = await ask(model, think ? '#tools #think' : '#tools', { stream, tools: true, think });
            assert.deepEqual(asked.calls, [
              ['get_weather', { city: '北京' }],
              ['get_weather', { city: '上海' }],
            ]);
            assert.deepEqual([asked.text, asked.thinking], ['let me look', think ? '先想一想' : '']);
            const answered = await asked.answer(['晴', '雨']);
            assert.equal(answered.text, 'got 晴+雨');
            // Signed thinking went back through the client: the strict upstream has taken it, and thinking stayed on.
            if (think && model !== 'gpt') assert.ok(lastCall(model).includes('"signature":"sig-1"'), lastCall(model));
          });
      }
    });
  }
}

describe('a session that changes doors', () => {
  test('begun by an OpenAI client, goes on with an Anthropic one and comes back', async () => {
    const headers = { 'x-hermes-session-id': 'door-to-door' };
    const extra = { headers };
    await openai().chat.completions.create({ model: 'gpt', messages: [{ role: 'user', content: 'one' }] }, extra);
    await anthropic().messages.create({ model: 'claude', max_tokens: 100, messages: [{ role: 'user', content: 'two' }] }, extra);
    await openai().responses.create({ model: 'gpt', input: 'three' }, extra);
    const texts = (openaiFake.calls.at(-1)?.body.messages ?? []).map(({ role, content }) => [role, content]);
    assert.deepEqual(texts, [
      ['user', 'one'],
      ['assistant', 'Hello, 世界'],
      ['user', 'two'],
      ['assistant', 'Hello, 世界'],
      ['user', 'three'],
    ]);
  });

  test('previous_response_id goes on with the conversation', async () => {
    const first = await openai().responses.create({ model: 'gpt', input: 'remember me' });
    const second = await openai().responses.create({ model: 'claude', input: 'again', previous_response_id: first.id });
    const roles = anthropicFake.calls.at(-1)?.body.messages.map(({ role, content }) => [role, content.map((block) => block.text).join()]);
    assert.deepEqual(roles, [
      ['user', 'remember me'],
      ['assistant', 'Hello, 世界'],
      ['user', 'again'],
    ]);
    assert.notEqual(second.id, first.id);
  });
});

describe('an Anthropic client in front of an Anthropic upstream', () => {
  for (const stream of [false, true])
    for (const session of [undefined, 'relayed'])
      test(`gets its bytes as they came, ${stream ? 'streamed' : 'whole'}${session ? ', in a session' : ''}`, async () => {
        const body = JSON.stringify({
          model: 'claude',
          max_tokens: 2000,
          stream,
          messages: [{ role: 'user', content: `#tools #think ${stream}` }],
          tools: [{ name: 'get_weather', input_schema: SCHEMA }],
          thinking: { type: 'enabled', budget_tokens: 1024 },
        });
        const headers = { 'content-type': 'application/json', 'x-api-key': KEY, ...(session ? { 'x-hermes-session-id': `${session}-${stream}` } : {}) };
        const response = await fetch(`${base}/v1/messages`, { method: 'POST', headers, body });
        // A field of hermes' own was used: its object stands behind the rest.
        const text = (await response.text()).replace(/,"hermes":\{.*\}(?=\}\s*$)/, '');
        assert.equal(text, anthropicFake.sent.at(-1));
        assert.ok(response.headers.get('request-id'));
      });
});

test('count_tokens tells what hermes reckons with, without asking an upstream', async () => {
  const calls = anthropicFake.calls.length;
  const count = async (text: string): Promise<number> =>
    (
      await anthropic().messages.countTokens({
        model: 'claude',
        messages: [{ role: 'user', content: text }],
        tools: [{ name: 'get_weather', input_schema: SCHEMA }],
      })
    ).input_tokens;
  const [short, long] = [await count('hi'), await count('word '.repeat(200))];
  assert.ok(short > 10 && short < 100 && long > short + 150 && long < short + 400, `${short}, ${long}`);
  assert.equal(anthropicFake.calls.length, calls);
  await assert.rejects(
    new Anthropic({ apiKey: 'wrong', baseURL: base, maxRetries: 0 }).messages.countTokens({ model: 'claude', messages: [{ role: 'user', content: 'x' }] }),
    Anthropic.AuthenticationError,
  );
});

test('a tool runner, which begins with a thread, goes on by sending the whole conversation', async () => {
  for (const model of ['claude', 'gpt'])
    for (const session of [undefined, `runner-${model}`]) {
      const weather = {
        type: 'custom' as const,
        name: 'get_weather',
        input_schema: SCHEMA,
        parse: (input: unknown) => input as { city: string },
        run: ({ city }: { city: string }) => `${city} sunny`,
      };
      const client = new Anthropic({
        apiKey: KEY,
        baseURL: base,
        maxRetries: 0,
        timeout: 5000,
        defaultHeaders: session ? { 'x-hermes-session-id': session } : {},
      });
      const last = await client.beta.messages.toolRunner({ model, max_tokens: 100, messages: [{ role: 'user', content: '#tools now' }], tools: [weather] });
      assert.equal(last.content.map((block) => (block.type === 'text' ? block.text : '')).join(''), 'got 北京 sunny+上海 sunny');
    }
  await assert.rejects(
    anthropic().beta.messages.thread({ model: 'claude', max_tokens: 10 }).send({ role: 'user', content: 'hi' }),
    (error) => error instanceof Anthropic.BadRequestError && /session_id/.test(error.message),
  );
});

test('models are listed in the form of the SDK that asks', async () => {
  const listed = [];
  for await (const { id, type, display_name, created_at } of anthropic().models.list({ limit: 2 })) listed.push([id, type, display_name, typeof created_at]);
  assert.deepEqual(listed[1], ['gpt', 'model', 'gpt', 'string']);
  assert.equal(listed.length, 4);
  const { id, type } = await anthropic().models.retrieve('claude');
  assert.deepEqual([id, type], ['claude', 'model']);
  await assert.rejects(anthropic().messages.batches.list(), (error) => error instanceof Anthropic.PermissionDeniedError && error.type === 'permission_error');
  await assert.rejects(anthropic().models.retrieve('nope'), (error) => error instanceof Anthropic.NotFoundError && error.type === 'not_found_error');
  for await (const model of openai().models.list()) assert.equal(model.object, 'model');
});

test('native tools need no name: a toolset has none', async () => {
  const toolset = { type: 'mcp_toolset', mcp_server_name: 'x' };
  const reply = await fetch(`${base}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'claude', max_tokens: 10, messages: [{ role: 'user', content: 'hi' }], tools: [toolset] }),
  });
  assert.equal(reply.status, 200);
  assert.deepEqual((anthropicFake.calls.at(-1)?.body as { tools?: unknown } | undefined)?.tools, [toolset]);
});

describe('errors', () => {
  test("reach an Anthropic client in its own shape, as the SDK's own class", async () => {
    await assert.rejects(
      anthropic().messages.create({ model: 'nope', max_tokens: 1, messages: [{ role: 'user', content: 'x' }] }),
      (error) => error instanceof Anthropic.NotFoundError && error.type === 'not_found_error',
    );
    await assert.rejects(
      new Anthropic({ apiKey: 'wrong', baseURL: base, maxRetries: 0 }).messages.create({
        model: 'gpt',
        max_tokens: 1,
        messages: [{ role: 'user', content: 'x' }],
      }),
      Anthropic.AuthenticationError,
    );
  });
  test("reach a Responses client in OpenAI's", async () => {
    await assert.rejects(
      openai().responses.create({ model: 'nope', input: 'x' }),
      (error) => error instanceof OpenAI.NotFoundError && error.code === 'model_not_found',
    );
  });
});

test('no upstream was ever sent what it refuses', () => {
  assert.deepEqual([openaiFake.violations, anthropicFake.violations], [[], []]);
});

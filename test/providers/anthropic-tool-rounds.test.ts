import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { type App, createApp } from '../../src/app.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { createFakeAnthropic, type FakeAnthropic } from './fake-anthropic.ts';

const KEY = 'sk-tool-rounds-0123456789abcdef';
let directory: string;
let endpoint: Server;
let fake: FakeAnthropic;
let app: App;
const asked: string[] = [];

before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'tool-rounds-'));
  endpoint = createServer(async (request, response) => {
    let raw = '';
    for await (const part of request) raw += part;
    asked.push(raw);
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"state":"shipped"}');
  });
  await new Promise<void>((done) => endpoint.listen(0, '127.0.0.1', done));
  fake = await createFakeAnthropic(({ body }) => {
    const results = body.messages.at(-1)?.content.some((block) => block.type === 'tool_result');
    const thinking = { type: 'thinking', thinking: `想 ${body.messages.length}`, signature: `sig-${body.messages.length}-${fake.calls.length}` };
    if (results) return [thinking, { type: 'text', text: 'It is shipped.' }];
    return [
      thinking,
      { type: 'text', text: 'Looking. ' },
      { type: 'tool_use', id: `toolu_${fake.calls.length}`, name: 'order__query', input: { order_id: 'A1' } },
    ];
  });
  const url = `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}/orders`;
  const text = `
server: { host: 127.0.0.1, port: 0 }
auth: { keys: [{ id: main, key_env: MAIN_KEY, service: s, services: ["*"], project: p, projects: ["*"], models: ["*"], tools: ["*"], user_levels: ["*"] }] }
models: [{ id: claude, provider: anthropic, model_name: claude-sonnet-4-5, api_base: "${fake.url}", api_key_env: ANT_KEY }]
tools: [{ id: order.query, description: Looks an order up, parameters: { type: object, properties: { order_id: { type: string } } }, endpoint: "${url}", side_effects: false, allow: { services: ["*"], user_levels: ["*"] } }]
default_model: claude
session: { storage: { hot_backend: memory, cold_backend: sqlite } }
`;
  const env = { MAIN_KEY: KEY, ANT_KEY: 'sk-ant', DATABASE_URL: 'sqlite::memory:' };
  app = await createApp({ load: { file: join(directory, 'hermes.yaml'), text, env, cwd: directory }, createLog: () => createLog('silent') });
});
after(async () => {
  await app.stop();
  await fake.close();
  endpoint.closeAllConnections();
  endpoint.close();
  rmSync(directory, { recursive: true, force: true });
});

/** One turn through the chat door: its text. */
async function chat(stream: boolean, session: string | undefined, text: string): Promise<string> {
  const client = new OpenAI({ apiKey: KEY, baseURL: `http://127.0.0.1:${app.port}/v1`, maxRetries: 0, timeout: 8000 });
  const extra = { headers: { 'x-hermes-tools': 'order.query', ...(session ? { 'x-hermes-session-id': session } : {}) } };
  const request = { model: 'claude', reasoning_effort: 'low' as const, messages: [{ role: 'user' as const, content: text }] };
  const completion = stream ? await client.chat.completions.stream(request, extra).finalChatCompletion() : await client.chat.completions.create(request, extra);
  assert.equal(completion.choices[0]?.finish_reason, 'stop');
  return completion.choices[0]?.message.content ?? '';
}
async function messages(stream: boolean, session: string | undefined, text: string): Promise<string> {
  const client = new Anthropic({ apiKey: KEY, baseURL: `http://127.0.0.1:${app.port}`, maxRetries: 0, timeout: 8000 });
  const extra = { headers: { 'x-hermes-tools': 'order.query', ...(session ? { 'x-hermes-session-id': session } : {}) } };
  const request = {
    model: 'claude',
    max_tokens: 4000,
    thinking: { type: 'enabled' as const, budget_tokens: 1024 },
    messages: [{ role: 'user' as const, content: text }],
  };
  const message = stream ? await client.messages.stream(request, extra).finalMessage() : await client.messages.create(request, extra);
  assert.equal(message.stop_reason, 'end_turn');
  assert.ok(!message.content.some((block) => block.type === 'tool_use'), 'a call of hermes is shown');
  return message.content.map((block) => (block.type === 'text' ? block.text : '')).join('');
}

describe("hermes' own tools in front of a Claude that thinks", () => {
  for (const [door, ask] of [
    ['chat', chat],
    ['messages', messages],
  ] as const)
    for (const stream of [false, true])
      for (const session of [undefined, `s-${door}-${stream}`])
        test(`${door}, ${stream ? 'streamed' : 'whole'}${session ? ', in a session, twice' : ''}`, async () => {
          const [calls, ran] = [fake.calls.length, asked.length];
          assert.match(await ask(stream, session, 'where is A1?'), /It is shipped\.$/);
          assert.equal(asked.length - ran, 1);
          const second = fake.calls[calls + 1]?.body;
          const turn = second?.messages.find(({ role }) => role === 'assistant')?.content;
          assert.deepEqual(
            turn?.map(({ type }) => type),
            ['thinking', 'text', 'tool_use'],
            'the signed thinking is kept through the round',
          );
          assert.deepEqual(Reflect.get(Object(second?.thinking), 'type'), 'enabled');
          if (session) {
            assert.match(await ask(stream, session, 'and now?'), /It is shipped\.$/);
            const kept = fake.calls.at(-1)?.body.messages.map(({ role, content }) => `${role}: ${content.map(({ type }) => type).join()}`);
            assert.deepEqual(kept, [
              'user: text',
              'assistant: thinking,text,tool_use',
              'user: tool_result',
              'assistant: thinking,text',
              'user: text',
              'assistant: thinking,text,tool_use',
              'user: tool_result',
            ]);
          }
          assert.deepEqual(fake.violations, []);
        });
});

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import door from '../../src/doors/anthropic-messages.ts';
import openaiProvider from '../../src/providers/openai.ts';
import { type Reply, type RunningApp, startApp } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { createFakeAnthropic, type FakeAnthropic } from '../providers/fake-anthropic.ts';
import { makeTarget } from '../upstream/send-kit.ts';

/** Clients of other forms in front of an upstream that speaks OpenAI's, and is as strict. */
let openai: FakeUpstream;
let anthropic: FakeAnthropic;
let app: RunningApp;

before(async () => {
  openai = await createFakeUpstream();
  anthropic = await createFakeAnthropic(() => [{ type: 'text', text: 'ok' }]);
  const gpt = { provider: 'openai', api_base: openai.url, api_key_env: 'UP_KEY' };
  const models = [
    { id: 'gpt', model_name: 'gpt-4o', ...gpt },
    { id: 'claude', provider: 'anthropic', model_name: 'claude-sonnet-4-5', api_base: anthropic.url, api_key_env: 'ANT_KEY', max_tokens: 4000 },
  ];
  app = await startApp({ models, default_model: 'gpt' }, { env: { UP_KEY: 'sk-up', ANT_KEY: 'sk-ant' } });
});
after(async () => {
  await app.stop();
  await Promise.all([openai.close(), anthropic.close()]);
});

const HI = [{ role: 'user', content: 'hi' }];
const messages = (body: object): Promise<Reply> => app.post('/v1/messages', { model: 'gpt', max_tokens: 100, messages: HI, ...body });
/** What the upstream got of a request that it has to take. */
async function sent(path: 'messages' | 'responses', body: object): Promise<Record<string, unknown>> {
  const reply = await (path === 'messages' ? messages(body) : app.post('/v1/responses', { model: 'gpt', input: 'hi', store: false, ...body }));
  assert.equal(reply.status, 200, reply.text);
  return openai.calls.at(-1)?.body ?? {};
}

describe('an Anthropic client in front of an OpenAI upstream', () => {
  const user_id = `user_${'a'.repeat(64)}_account__session_${'b'.repeat(36)}`;

  test('has a long user id hashed to what is taken there, the same one each time; a short one stays', async () => {
    const [one, two] = [await sent('messages', { metadata: { user_id } }), await sent('messages', { metadata: { user_id } })];
    assert.match(String(one.user), /^[0-9a-f]{64}$/);
    assert.equal(one.user, two.user);
    assert.equal((await sent('messages', { metadata: { user_id: 'u'.repeat(64) } })).user, 'u'.repeat(64));
  });

  test('has its whole user id in front of an Anthropic upstream', async () => {
    assert.equal((await messages({ model: 'claude', metadata: { user_id } })).status, 200);
    assert.deepEqual(anthropic.calls.at(-1)?.body.metadata, { user_id });
  });
});

describe('where no tool goes out, nothing speaks of tools', () => {
  const SEARCH = { type: 'web_search_20250305', name: 'web_search', max_uses: 2 };
  const READ = { name: 'read', input_schema: { type: 'object' } };
  for (const [name, path, body] of [
    ['a native tool that stays behind, and is chosen', 'messages', { tools: [SEARCH], tool_choice: { type: 'tool', name: 'web_search' } }],
    ['a native tool that stays behind, one at a time', 'messages', { tools: [SEARCH], tool_choice: { type: 'auto', disable_parallel_tool_use: true } }],
    ['a native tool that stays behind, and any must be used', 'messages', { tools: [SEARCH], tool_choice: { type: 'any' } }],
    ['an empty list', 'messages', { tools: [], tool_choice: { type: 'auto' } }],
    ['none', 'messages', { tool_choice: { type: 'none' } }],
    ['parallel calls without tools', 'responses', { parallel_tool_calls: true }],
    ['parallel calls and an empty list', 'responses', { parallel_tool_calls: false, tools: [], tool_choice: 'auto' }],
  ] as const)
    test(`${path}: ${name}`, async () => {
      const out = await sent(path, body);
      assert.deepEqual([out.tools, out.tool_choice, out.parallel_tool_calls], [undefined, undefined, undefined]);
    });

  test("an OpenAI client's names of hermes' tools, none of which is to be had", async () => {
    const reply = await app.chat({ model: 'gpt', messages: HI, tools: ['no.such'], tool_choice: 'auto', parallel_tool_calls: true });
    assert.equal(reply.status, 200, reply.text);
  });

  test('beside others a native tool that is chosen is no choice any more; the rest of it stays', async () => {
    const chosen = { tools: [SEARCH, READ], tool_choice: { type: 'tool', name: 'web_search', disable_parallel_tool_use: true } };
    const body = await sent('messages', chosen);
    assert.deepEqual([body.tool_choice, body.parallel_tool_calls, Array.isArray(body.tools) && body.tools.length], [undefined, false, 1]);
    const other = await sent('messages', { tools: [SEARCH, READ], tool_choice: { type: 'tool', name: 'read' } });
    assert.deepEqual(other.tool_choice, { type: 'function', function: { name: 'read' } });
  });

  test('what stays behind is named', () => {
    const dropped = (body: object) => openaiProvider.toUpstream(door.enter({ messages: HI, ...body }, {}).request, makeTarget()).droppedParams;
    assert.deepEqual(dropped({ tools: [SEARCH], tool_choice: { type: 'any' } }), ['tools.web_search_20250305', 'tool_choice']);
    assert.deepEqual(dropped({ tools: [SEARCH, READ], tool_choice: { type: 'auto' } }), ['tools.web_search_20250305']);
  });
});

describe('an OpenAI client in front of an OpenAI upstream', () => {
  test('is told by the upstream itself what that refuses: its request is its own', async () => {
    const reply = await app.chat({ model: 'gpt', messages: HI, user: 'u'.repeat(65) });
    assert.deepEqual([reply.status, reply.json.error?.param], [400, 'user']);
    assert.equal(openai.calls.at(-1)?.body.user, 'u'.repeat(65));
  });
});

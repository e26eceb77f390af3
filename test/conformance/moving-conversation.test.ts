import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import OpenAI from 'openai';
import type { ChatMessage } from '../../src/wire/chat.ts';
import { CompletionBuilder } from '../../src/wire/collect.ts';
import { events, KEY, type RunningApp, startApp } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream, type ReceivedCall } from '../fake-upstream.ts';
import { createFakeAnthropic, type FakeAnthropic } from '../providers/fake-anthropic.ts';

const PNG = 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const BIG = '9007199254740993';
const TOOLS = ['order.query', 'weather'].map((name) => ({
  type: 'function' as const,
  function: { name, parameters: { type: 'object', properties: { id: { type: 'integer' } } } },
}));
/** Ids as each vendor mints them. */
const IDS = {
  gpt: ['call_Aa1', 'call_Bb2', 'call_Cc3'],
  deep: ['functions.order.query:0', 'functions.weather:1', 'functions.weather:2'],
  claude: ['toolu_01A', 'toolu_01B', 'toolu_01C'],
};
const NAMES = ['order__query', 'weather', 'weather'];

/** What OpenAI's own API refuses beyond what the strict fake does; of DeepSeek's thinking mode, what its guide says. */
function refusal(vendor: 'gpt' | 'deep', { body }: ReceivedCall): string | undefined {
  for (const [index, message] of body.messages.entries()) {
    const unknown = Object.keys(message).find(
      (key) => !['role', 'content', 'name', 'tool_calls', 'tool_call_id', 'refusal', ...(vendor === 'deep' ? ['reasoning_content'] : [])].includes(key),
    );
    if (unknown !== undefined) return `Unknown parameter: 'messages[${index}].${unknown}'.`;
    for (const { id } of message.tool_calls ?? []) if (vendor === 'gpt' && id.length > 40) return `Invalid 'messages[${index}].tool_calls': string too long.`;
    const reasoning = message.reasoning_content;
    if (vendor === 'deep' && message.tool_calls && typeof reasoning !== 'string')
      return `Missing \`reasoning_content\` field in the assistant message at message index ${index}.`;
    if (typeof reasoning === 'string' && reasoning !== '' && !reasoning.startsWith('深思')) return `The reasoning at ${index} is another vendor's.`;
  }
  return undefined;
}

describe('a conversation that moves from vendor to vendor', () => {
  const openai: { gpt?: FakeUpstream; deep?: FakeUpstream } = {};
  const refused: string[] = [];
  let claude: FakeAnthropic;
  let app: RunningApp;

  const answering = async (vendor: 'gpt' | 'deep'): Promise<FakeUpstream> => {
    const fake = await createFakeUpstream();
    fake.on(vendor === 'gpt' ? 'gpt-4o' : 'deepseek-reasoner', (reply, call) => {
      const wrong = refusal(vendor, call);
      // The first lesson is DeepSeek's to teach; nothing else may be refused.
      if (wrong !== undefined) refused.push(wrong);
      if (wrong !== undefined) return reply.error(400, wrong, { type: 'invalid_request_error' });
      const thinks = vendor === 'deep' ? { reasoning_content: `深思 ${call.earlier}` } : {};
      const final = call.body.messages.at(-1)?.content === 'the last' || call.raw.includes('and now?');
      const tool_calls = IDS[vendor].map((id, index) => ({
        id,
        type: 'function',
        function: { name: NAMES[index] ?? '', arguments: index === 2 ? '' : `{"id":${BIG}}` },
      }));
      const message = { content: final ? `${vendor} says so` : null, ...thinks, ...(final ? {} : { tool_calls }) };
      if (!call.body.stream) return reply.completion(message, { finish: final ? 'stop' : 'tool_calls' });
      const pieces = final ? [{ content: message.content ?? '' }] : tool_calls.map((one, index) => ({ tool_calls: [{ index, ...one }] }));
      return reply.stream([{ role: 'assistant', content: '' }, ...(vendor === 'deep' ? [thinks] : []), ...pieces, final ? 'stop' : 'tool_calls']);
    });
    return fake;
  };

  before(async () => {
    openai.gpt = await answering('gpt');
    openai.deep = await answering('deep');
    claude = await createFakeAnthropic(({ body, raw }) => {
      const thinking = { type: 'thinking', thinking: `想 ${body.messages.length}`, signature: `sig+/=${claude.calls.length}` };
      if (raw.includes('and now?')) return [thinking, { type: 'text', text: 'claude says so' }];
      return [thinking, ...IDS.claude.map((id, index) => ({ type: 'tool_use', id, name: NAMES[index] ?? '', input: index === 2 ? {} : { id: 7 } }))];
    });
    const model = (id: string, model_name: string, api_base: string, more: object = {}) => ({
      id,
      provider: 'openai',
      model_name,
      api_base,
      api_key_env: 'UP_KEY',
      ...more,
    });
    app = await startApp(
      {
        models: [
          model('gpt', 'gpt-4o', openai.gpt.url),
          model('deep', 'deepseek-reasoner', openai.deep.url),
          model('claude', 'claude-sonnet-4-5', claude.url, { provider: 'anthropic', api_key_env: 'ANT_KEY' }),
        ],
      },
      { env: { UP_KEY: 'sk-up', ANT_KEY: 'sk-ant' } },
    );
  });
  after(async () => {
    await app.stop();
    await Promise.all([openai.gpt?.close(), openai.deep?.close(), claude.close()]);
  });

  /** One answer as a client keeps it: every member of the message, those that it does not know, too. */
  const ask = async (model: string, messages: object[], { stream, session }: { stream: boolean; session: string | undefined }): Promise<ChatMessage> => {
    const more = model === 'claude' ? { reasoning_effort: 'low' } : {};
    const reply = await app.chat({ model, messages, tools: TOOLS, stream, ...more }, session ? { 'x-hermes-session-id': session } : {});
    assert.equal(reply.status, 200, `${model}: ${reply.text}`);
    const builder = new CompletionBuilder();
    if (stream) for (const event of events(reply)) if (event !== '[DONE]') builder.add(event as never);
    const completion = stream ? builder.build() : (reply.json as unknown as OpenAI.ChatCompletion);
    const message = completion.choices[0]?.message as ChatMessage | undefined;
    assert.ok(message, reply.text);
    return message;
  };
  const results = (message: ChatMessage): object[] =>
    (message.tool_calls ?? []).map(({ id }, index) => ({ role: 'tool', tool_call_id: id, content: index === 1 ? '' : `result of ${id}` }));
  const picture = {
    role: 'user',
    content: [
      { type: 'text', text: '看图' },
      { type: 'image_url', image_url: { url: PNG } },
    ],
  };
  const path = ['gpt', 'claude', 'deep', 'claude', 'gpt'] as const;

  for (const stream of [false, true])
    for (const session of [undefined, `moving-${stream}`])
      test(`OpenAI, Anthropic, DeepSeek, Anthropic, OpenAI, with calls open at every change: ${stream ? 'streamed' : 'whole'}, ${session ? 'in a session' : 'resent by its client'}`, async () => {
        const history: object[] = [];
        let fresh: object[] = [{ role: 'system', content: 'Be kind.' }, picture];
        for (const model of path) {
          history.push(...fresh);
          const message = await ask(model, session ? fresh : history, { stream, session });
          assert.deepEqual(
            message.tool_calls?.map((call) => call.function.name),
            ['order.query', 'weather', 'weather'],
          );
          assert.equal(message.tool_calls?.[2]?.function.arguments, '{}');
          history.push(message);
          fresh = results(message);
        }
        const last = [...fresh, { role: 'user', content: 'and now?' }];
        history.push(...last);
        for (const model of ['deep', 'claude', 'gpt'])
          assert.equal(
            (await ask(model, session ? (model === 'deep' ? last : [{ role: 'user', content: 'and now?' }]) : history, { stream, session })).content,
            `${model} says so`,
          );
        if (session) await keepsTheOriginals(session);
      });

  const keepsTheOriginals = async (session: string): Promise<void> => {
    const { text } = await app.fetch(`/admin/sessions/${session}/export`);
    for (const id of Object.values(IDS).flat()) assert.ok(text.includes(JSON.stringify(id)), `the id ${id} was changed`);
    for (const word of [PNG, BIG, 'order.query', 'sig+/=', '想 ', '深思 ']) assert.ok(text.includes(word), `${word} was lost`);
    assert.doesNotMatch(text, /order__query/);
  };

  test('without a single 400, but for the one that taught hermes what DeepSeek wants', () => {
    assert.deepEqual([claude.violations, openai.gpt?.violations, openai.deep?.violations], [[], [], []]);
    assert.deepEqual(
      refused.map((text) => text.replace(/ at message index \d+/, '')),
      ['Missing `reasoning_content` field in the assistant message.'],
    );
  });

  test('and not even that one where the configuration says it', async () => {
    const deep = openai.deep ?? assert.fail();
    const told = await startApp(
      { models: [{ id: 'deep', provider: 'openai', model_name: 'deepseek-reasoner', api_base: deep.url, api_key_env: 'UP_KEY', empty_reasoning: true }] },
      { env: { UP_KEY: 'sk-up' } },
    );
    try {
      const before = refused.length;
      const call = { role: 'assistant', content: null, tool_calls: [{ id: 'call_x', type: 'function', function: { name: 'weather', arguments: '{}' } }] };
      const client = new OpenAI({ apiKey: KEY, baseURL: `${told.base}/v1`, maxRetries: 0 });
      const messages = [{ role: 'user', content: 'hi' }, call, { role: 'tool', tool_call_id: 'call_x', content: 'ok' }] as OpenAI.ChatCompletionMessageParam[];
      await client.chat.completions.create({ model: 'deep', messages, tools: TOOLS });
      assert.equal(refused.length, before);
    } finally {
      await told.stop();
    }
  });
});

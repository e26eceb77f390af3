import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import OpenAI from 'openai';
import { KEY, type RunningApp, startApp } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream, USAGE } from '../fake-upstream.ts';
import { createFakeAnthropic, type FakeAnthropic } from '../providers/fake-anthropic.ts';

type Response = OpenAI.Responses.Response;
const PATCH = '*** Begin Patch\n+ "caf\u00e9" \\u00e9 \\ 世界 🙂\n\t*** End Patch';
const DEFINITION = 'start: "*** Begin Patch" LF hunk+\nhunk: /.+/';
const TOOL = {
  type: 'custom' as const,
  name: 'apply_patch',
  description: 'Edits files.',
  format: { type: 'grammar' as const, syntax: 'lark' as const, definition: DEFINITION },
};
const WEATHER = { type: 'function' as const, name: 'weather', parameters: { type: 'object', properties: {} }, strict: false };

describe('tools whose input is free text', () => {
  let upstream: FakeUpstream;
  let anthropic: FakeAnthropic;
  let app: RunningApp;
  let client: OpenAI;
  before(async () => {
    upstream = await createFakeUpstream();
    upstream.on('gpt-fake', (reply, { body }) => {
      if (body.messages.at(-1)?.role === 'tool') return reply.completion({ content: 'patched' });
      const custom = { id: 'call_1', type: 'custom', custom: { name: 'apply_patch', input: PATCH } };
      const weather = { id: 'call_2', type: 'function', function: { name: 'weather', arguments: '{}' } };
      if (!body.stream) return reply.completion({ tool_calls: [custom, weather] as never });
      const cut = Array.from(PATCH).map((input) => ({ tool_calls: [{ index: 0, custom: { input } }] }));
      const first = { tool_calls: [{ index: 0, ...custom, custom: { name: 'apply_patch', input: '' } }] };
      return reply.stream([first, ...cut, { tool_calls: [{ index: 1, ...weather }] }, 'tool_calls', { usage: USAGE }]);
    });
    upstream.on('deepseek-chat', (reply, { body }) => {
      if (body.messages.at(-1)?.role === 'tool') return reply.completion({ content: 'patched' });
      const call = { id: 'call_1', type: 'function', function: { name: 'apply_patch', arguments: '' } };
      if (!body.stream) return reply.completion({ tool_calls: [{ ...call, function: { ...call.function, arguments: JSON.stringify({ input: PATCH }) } }] });
      const cut = [...JSON.stringify({ input: PATCH }).replace('é', '\\u00e9').replace('🙂', '\\ud83d\\ude42')];
      return reply.stream([
        { tool_calls: [{ index: 0, ...call }] },
        ...cut.map((one) => ({ tool_calls: [{ index: 0, function: { arguments: one } }] })),
        'tool_calls',
      ]);
    });
    anthropic = await createFakeAnthropic(({ body }) =>
      body.messages.at(-1)?.content.some(({ type }) => type === 'tool_result')
        ? [{ type: 'text', text: 'patched' }]
        : [{ type: 'tool_use', id: 'toolu_1', name: 'apply_patch', input: { input: PATCH } }],
    );
    app = await startApp(
      {
        models: [
          { id: 'gpt', provider: 'openai', model_name: 'gpt-fake', api_base: upstream.url, api_key_env: 'UP_KEY' },
          { id: 'other', provider: 'openai', model_name: 'deepseek-chat', api_base: upstream.url, api_key_env: 'UP_KEY' },
          { id: 'claude', provider: 'anthropic', model_name: 'claude-sonnet-4-5', api_base: anthropic.url, api_key_env: 'ANT_KEY' },
        ],
      },
      { env: { UP_KEY: 'sk-up', ANT_KEY: 'sk-ant' } },
    );
    client = new OpenAI({ apiKey: KEY, baseURL: `${app.base}/v1`, maxRetries: 0, timeout: 30_000 });
  });
  after(async () => {
    await app.stop();
    await Promise.all([upstream.close(), anthropic.close()]);
    assert.deepEqual([upstream.violations, anthropic.violations], [[], []]);
  });
  const create = (body: object, stream: boolean): Promise<Response> => {
    const asked = { input: 'patch it', tools: [TOOL, WEATHER], ...body } as Parameters<OpenAI['responses']['stream']>[0];
    return stream ? client.responses.stream(asked).finalResponse() : (client.responses.create(asked as never) as Promise<Response>);
  };

  for (const model of ['gpt', 'other', 'claude'])
    for (const stream of [false, true])
      test(`${model}${stream ? ', streamed' : ''}: the call, and its output`, async () => {
        const first = await create({ model }, stream);
        const [call] = first.output;
        assert.ok(call?.type === 'custom_tool_call');
        assert.match(String(call.id), /^ctc_/);
        assert.deepEqual([call.name, call.input], ['apply_patch', PATCH]);
        const second = await create(
          {
            model,
            input: [
              { role: 'user', content: 'patch it' },
              ...first.output,
              { type: 'custom_tool_call_output', call_id: call.call_id, output: 'Done!' },
              ...(model === 'gpt' ? [{ type: 'function_call_output', call_id: 'call_2', output: 'sunny' }] : []),
            ],
          },
          stream,
        );
        assert.equal(second.output_text, 'patched');
        const referred = await create(
          {
            model,
            input: [
              { type: 'item_reference', id: call.id },
              { type: 'custom_tool_call_output', call_id: call.call_id, output: 'Done!' },
            ],
          },
          stream,
        );
        assert.equal(referred.output_text, 'patched');
      });

  test('go to a model of OpenAI as they are, with the choice of them and their calls', async () => {
    const sent = () => upstream.callsOf('gpt-fake').at(-1)?.body;
    const { output } = await create({ model: 'gpt', tool_choice: { type: 'custom', name: 'apply_patch' } }, false);
    const { format, ...rest } = TOOL;
    const custom = { name: rest.name, description: rest.description, format: { type: 'grammar', grammar: { syntax: 'lark', definition: DEFINITION } } };
    assert.deepEqual(
      [sent()?.tools?.[0], sent()?.tool_choice],
      [
        { type: 'custom', custom },
        { type: 'custom', custom: { name: 'apply_patch' } },
      ],
    );
    const allowed = {
      type: 'allowed_tools',
      mode: 'required',
      tools: [
        { type: 'custom', name: 'apply_patch' },
        { type: 'function', name: 'weather' },
      ],
    };
    const outputs = [
      { type: 'custom_tool_call_output', call_id: 'call_1', output: 'Done!' },
      { type: 'function_call_output', call_id: 'call_2', output: 'x' },
    ];
    await create({ model: 'gpt', tool_choice: allowed, input: [{ role: 'user', content: 'patch it' }, ...output, ...outputs] }, false);
    assert.deepEqual(sent()?.tool_choice, {
      type: 'allowed_tools',
      allowed_tools: {
        mode: 'required',
        tools: [
          { type: 'custom', custom: { name: 'apply_patch' } },
          { type: 'function', function: { name: 'weather' } },
        ],
      },
    });
    assert.deepEqual(sent()?.messages[1]?.tool_calls?.[0], { id: 'call_1', type: 'custom', custom: { name: 'apply_patch', input: PATCH } });
  });

  test('go to others as a function that tells the rule', async () => {
    await create({ model: 'claude' }, false);
    const [tool] = (anthropic.calls.at(-1)?.body.tools ?? []) as { description: string; input_schema: unknown }[];
    assert.equal(tool?.description, `Edits files.\n\n\`input\` must follow this Lark grammar:\n${DEFINITION}`);
    assert.deepEqual(tool?.input_schema, { type: 'object', properties: { input: { type: 'string' } }, required: ['input'], additionalProperties: false });
  });

  test('come piece by piece, and as a whole at the end', async () => {
    for (const model of ['gpt', 'other']) {
      const events: OpenAI.Responses.ResponseStreamEvent[] = [];
      for await (const event of client.responses.stream({ model, input: 'patch it', tools: [TOOL] })) events.push(event);
      const deltas = events.flatMap((event) => (event.type === 'response.custom_tool_call_input.delta' ? [event.delta] : []));
      assert.equal(deltas.join(''), PATCH);
      assert.ok(deltas.length > 30);
      const done = events.find(({ type }) => type === 'response.custom_tool_call_input.done');
      assert.equal(Object(done).input, PATCH);
    }
  });
});

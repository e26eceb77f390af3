import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { KEY, type RunningApp, startApp } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { type AnthropicCall, createFakeAnthropic, type FakeAnthropic } from '../providers/fake-anthropic.ts';

/** The shape of a coding agent's traffic: everything is resent each time, with a mark for the prompt cache at its end. */
const TURNS = 60;
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const TASK = 'Make the tests pass. 请小心。';
const SYSTEM = `You are a careful engineer.\n${'A rule that is always the same. '.repeat(40)}`;
const NAMES = ['Read', 'Edit', 'Bash', 'Grep', 'Glob', 'Write', 'TodoWrite', 'mcp__browser__screenshot', 'Task', 'WebFetch'];
const SCHEMA = { type: 'object' as const, properties: { path: { type: 'string' }, line: { type: 'integer' }, text: { type: 'string' } } };

interface Call {
  name: string;
  input: Record<string, unknown>;
}
/** What the model wants in its turn; nothing: it is done. */
function callsOf(turn: number): Call[] {
  if (turn >= TURNS) return [];
  return Array.from({ length: 1 + (turn % 3) }, (_, at) => {
    const name = NAMES[(turn + at) % NAMES.length] ?? 'Read';
    return { name, input: turn % 7 === 6 ? {} : { path: `src/文件-${turn}.ts`, line: turn, text: turn % 5 === 0 ? '"quoted"\n\ttab \\ and 🎉' : '' } };
  });
}
const saysIn = (turn: number): string => (turn >= TURNS ? 'All done.' : turn % 4 === 1 ? '' : `Step ${turn}.`);
interface Result {
  text: string;
  failed: boolean;
  picture: boolean;
}
function resultOf(turn: number, at: number): Result {
  const picture = callsOf(turn)[at]?.name === 'mcp__browser__screenshot';
  const text = turn % 9 === 8 ? '' : turn % 11 === 0 ? `${'0123456789abcdef'.repeat(400)}\n` : `result ${turn}.${at}\n  const x = "\u0000\u001b[31m";`;
  return { text, failed: (turn + at) % 6 === 5 && text !== '', picture };
}
/** Now and then somebody says something in between. */
const remark = (turn: number): string | undefined => (turn % 10 === 9 ? `<reminder>${turn} steps so far</reminder>` : undefined);

describe("a coding agent's 60 turns", () => {
  let gpt: FakeUpstream;
  let claude: FakeAnthropic;
  let app: RunningApp;

  before(async () => {
    gpt = await createFakeUpstream();
    gpt.on('gpt-fake', (reply, { body }) => {
      const turn = body.messages.filter(({ role }) => role === 'assistant').length;
      const tool_calls = callsOf(turn).map(({ name, input }, at) => ({
        id: `call_${turn}_${at}`,
        type: 'function',
        function: { name, arguments: JSON.stringify(input) },
      }));
      return reply.completion({ content: saysIn(turn) || (tool_calls.length > 0 ? null : ''), ...(tool_calls.length > 0 ? { tool_calls } : {}) });
    });
    claude = await createFakeAnthropic(({ body }) => {
      const turn = body.messages.filter(({ role }) => role === 'assistant').length;
      const text = saysIn(turn);
      return [
        ...(body.thinking ? [{ type: 'thinking', thinking: `想 ${turn}`, signature: `sig+/=${turn}` }] : []),
        ...(body.thinking && turn % 8 === 3 ? [{ type: 'redacted_thinking', data: `red${turn}` }] : []),
        ...(text === '' ? [] : [{ type: 'text', text }]),
        ...callsOf(turn).map(({ name, input }, at) => ({ type: 'tool_use', id: `toolu_${turn}_${at}`, name, input })),
      ];
    });
    app = await startApp(
      {
        models: [
          { id: 'gpt', provider: 'openai', model_name: 'gpt-fake', api_base: gpt.url, api_key_env: 'UP_KEY' },
          { id: 'claude', provider: 'anthropic', model_name: 'claude-sonnet-4-5', api_base: claude.url, api_key_env: 'ANT_KEY' },
        ],
      },
      { env: { UP_KEY: 'sk-up', ANT_KEY: 'sk-ant' } },
    );
  });
  after(async () => {
    await app.stop();
    await Promise.all([gpt.close(), claude.close()]);
  });

  const chat = async (model: string): Promise<number> => {
    const client = new OpenAI({ apiKey: KEY, baseURL: `${app.base}/v1`, maxRetries: 0, timeout: 10_000 });
    const messages: OpenAI.ChatCompletionMessageParam[] = [
      { role: 'system', content: SYSTEM },
      {
        role: 'user',
        content: [
          { type: 'text', text: TASK },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } },
        ],
      },
    ];
    const tools = NAMES.map((name) => ({ type: 'function' as const, function: { name, description: `${name} does it`, parameters: SCHEMA } }));
    for (let turn = 0; ; turn++) {
      const request = { model, messages, tools, ...(model === 'claude' ? { reasoning_effort: 'low' as const } : {}) };
      const completion = turn % 2 === 0 ? await client.chat.completions.create(request) : await client.chat.completions.stream(request).finalChatCompletion();
      const message = completion.choices[0]?.message ?? assert.fail('no answer');
      messages.push(message);
      if (!message.tool_calls?.length) return turn;
      for (const [at, { id }] of message.tool_calls.entries()) messages.push({ role: 'tool', tool_call_id: id, content: resultOf(turn, at).text });
      const said = remark(turn);
      if (said) messages.push({ role: 'user', content: said });
    }
  };

  const messages = async (model: string): Promise<number> => {
    const client = new Anthropic({ apiKey: KEY, baseURL: app.base, maxRetries: 0, timeout: 10_000 });
    const mark = { cache_control: { type: 'ephemeral' as const } };
    const turns: Anthropic.MessageParam[] = [
      {
        role: 'user',
        content: [
          { type: 'text', text: TASK },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } },
        ],
      },
    ];
    const tools = NAMES.map((name, at) => ({ name, description: `${name} does it`, input_schema: SCHEMA, ...(at === NAMES.length - 1 ? mark : {}) }));
    for (let turn = 0; ; turn++) {
      const request = {
        model,
        max_tokens: 8000,
        system: [
          { type: 'text' as const, text: 'Billing header' },
          { type: 'text' as const, text: SYSTEM, ...mark },
        ],
        messages: marked(turns),
        tools,
        thinking: { type: 'enabled' as const, budget_tokens: 2000 },
        metadata: { user_id: 'user_1_session_2' },
      };
      const message = turn % 2 === 0 ? await client.messages.create(request) : await client.messages.stream(request).finalMessage();
      turns.push({ role: 'assistant', content: message.content });
      const calls = message.content.filter((block) => block.type === 'tool_use');
      if (calls.length === 0) return turn;
      const said = remark(turn);
      turns.push({
        role: 'user',
        content: [...calls.map(({ id }, at) => toResult(id, resultOf(turn, at))), ...(said ? [{ type: 'text' as const, text: said }] : [])],
      });
    }
  };

  const responses =
    (goesOn: boolean) =>
    async (model: string): Promise<number> => {
      const client = new OpenAI({ apiKey: KEY, baseURL: `${app.base}/v1`, maxRetries: 0, timeout: 10_000 });
      const history: OpenAI.Responses.ResponseInput = [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: TASK },
            { type: 'input_image', detail: 'auto', image_url: `data:image/png;base64,${PNG}` },
          ],
        },
      ];
      const tools = NAMES.map((name) => ({ type: 'function' as const, name, description: `${name} does it`, parameters: SCHEMA, strict: false }));
      let input = [...history];
      let previous: string | undefined;
      for (let turn = 0; !goesOn || turn < TURNS; turn++) {
        const request = {
          model,
          input: goesOn ? input : history,
          instructions: SYSTEM,
          tools,
          ...(goesOn ? (previous ? { previous_response_id: previous } : {}) : { store: false, include: ['reasoning.encrypted_content' as const] }),
          ...(model === 'claude' ? { reasoning: { effort: 'low' as const, summary: 'auto' as const } } : {}),
        };
        const response: OpenAI.Responses.Response =
          turn % 2 === 0 ? await client.responses.create(request) : await client.responses.stream(request).finalResponse();
        previous = response.id;
        history.push(...(response.output as OpenAI.Responses.ResponseInput));
        const calls = response.output.filter((item) => item.type === 'function_call');
        if (calls.length === 0) return turn;
        const said = remark(turn);
        input = [
          ...calls.map(({ call_id }, at) => ({ type: 'function_call_output' as const, call_id, output: resultOf(turn, at).text })),
          ...(said ? [{ role: 'user' as const, content: said }] : []),
        ];
        history.push(...input);
      }
      return TURNS;
    };

  for (const [door, run] of [
    ['/v1/chat/completions', chat],
    ['/v1/messages', messages],
    ['/v1/responses', responses(false)],
  ] as const)
    for (const model of ['gpt', 'claude'])
      test(`run through ${door} before ${model} without a 400, and each step grows the last one's prompt`, async () => {
        const calls = model === 'gpt' ? gpt.calls : claude.calls;
        const first = calls.length;
        assert.equal(await run(model), TURNS);
        assert.deepEqual([gpt.violations, claude.violations], [[], []]);
        const prompts = calls.slice(first).map(({ body }) => body.messages.map((message) => JSON.stringify(withoutMarks(message))));
        assert.equal(prompts.length, TURNS + 1);
        for (const [step, prompt] of prompts.entries()) {
          // The API joins what follows it to the last message of a prompt: all before it must stay as it was.
          const before = prompts[step - 1]?.slice(0, -1) ?? [];
          assert.deepEqual(prompt.slice(0, before.length), before, `step ${step}`);
        }
        if (model === 'claude') keepsThinking(claude.calls.at(-1) ?? assert.fail());
      });

  test('run through /v1/messages before claude with every mark of the prompt cache, byte for byte', () => {
    const marks = claude.calls.filter(({ raw }) => raw.includes('Billing header')).map(({ raw }) => raw.split('"cache_control"').length - 1);
    assert.deepEqual(marks, Array(TURNS + 1).fill(3));
  });

  for (const model of ['gpt', 'claude'])
    test(`run through /v1/responses before ${model} by previous_response_id, beyond what the window holds`, async () => {
      const calls = model === 'gpt' ? gpt.calls : claude.calls;
      const first = calls.length;
      // What the window has cut off the model cannot count: it would go on for ever.
      assert.equal(await responses(true)(model), TURNS);
      assert.equal(calls.length - first, TURNS);
      assert.ok((calls.at(-1)?.body.messages.length ?? 0) < 2 * TURNS, 'nothing was cut');
      assert.deepEqual([gpt.violations, claude.violations], [[], []]);
    });
});

function toResult(tool_use_id: string, { text, failed, picture }: Result): Anthropic.ToolResultBlockParam {
  const shown = { type: 'image' as const, source: { type: 'base64' as const, media_type: 'image/png' as const, data: PNG } };
  const content = picture && !failed ? [...(text === '' ? [] : [{ type: 'text' as const, text }]), shown] : text;
  return { type: 'tool_result', tool_use_id, ...(content === '' ? {} : { content }), ...(failed ? { is_error: true } : {}) };
}

/** The last block of the last turn carries the mark; a turn later another one does. */
function marked(turns: readonly Anthropic.MessageParam[]): Anthropic.MessageParam[] {
  const last = turns.at(-1);
  if (last?.role !== 'user' || typeof last.content === 'string') return [...turns];
  const content = last.content.map((block, at) =>
    at === last.content.length - 1 ? Object.assign({}, block, { cache_control: { type: 'ephemeral' as const } }) : block,
  );
  return [...turns.slice(0, -1), { role: 'user', content }];
}

function withoutMarks(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (key, member: unknown) => (key === 'cache_control' ? undefined : member)));
}

/** Signed thinking of every step is there again, first in its turn. */
function keepsThinking({ body }: AnthropicCall): void {
  const turns = body.messages.filter(({ role }) => role === 'assistant');
  assert.equal(turns.length, TURNS);
  for (const [turn, { content }] of turns.entries()) assert.deepEqual(content[0], { type: 'thinking', thinking: `想 ${turn}`, signature: `sig+/=${turn}` });
}

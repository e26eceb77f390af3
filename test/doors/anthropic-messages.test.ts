import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import type Anthropic from '@anthropic-ai/sdk';
import { MessageStream } from '@anthropic-ai/sdk/lib/MessageStream';
import fc from 'fast-check';
import { HermesError } from '../../src/contracts/errors.ts';
import type { Batch } from '../../src/contracts/stream.ts';
import door from '../../src/doors/anthropic-messages.ts';
import anthropic from '../../src/providers/anthropic.ts';
import { translatedBatch } from '../../src/wire/batch.ts';
import { withoutCarriage } from '../../src/wire/carriage.ts';
import type { ChatChunk, ChatCompletion, Delta } from '../../src/wire/chat.ts';
import { spread } from '../../src/wire/collect.ts';
import { parseJson } from '../../src/wire/json.ts';
import { cutEvents, readEvent } from '../../src/wire/sse.ts';
import { anthropicTarget } from '../providers/anthropic-targets.ts';

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const EPHEMERAL = { type: 'ephemeral' as const };

/** What a coding agent sends: cache marks, thinking with signatures, parallel tools, an image in a result, an error. */
const AGENT: Anthropic.MessageCreateParamsNonStreaming = {
  model: 'claude',
  max_tokens: 4000,
  system: [
    { type: 'text', text: 'You are a coder.' },
    { type: 'text', text: 'Long rules.', cache_control: EPHEMERAL },
  ],
  tools: [
    { name: 'read', description: 'Reads', input_schema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] } },
    { name: 'write', input_schema: { type: 'object' }, cache_control: EPHEMERAL },
  ],
  tool_choice: { type: 'auto', disable_parallel_tool_use: true },
  messages: [
    { role: 'user', content: [{ type: 'text', text: '看一下' }] },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: '先想 🤔', signature: 'EqQB+/==' },
        { type: 'redacted_thinking', data: 'Ab+/=' },
        { type: 'text', text: 'Let me look' },
        { type: 'tool_use', id: 'toolu_1', name: 'read', input: { path: 'a', n: 1 } },
        { type: 'tool_use', id: 'toolu_2', name: 'write', input: {}, cache_control: EPHEMERAL },
      ],
    },
    {
      role: 'user',
      content: [
        {
          type: 'tool_result',
          tool_use_id: 'toolu_1',
          content: [
            { type: 'text', text: 'see' },
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } },
          ],
        },
        { type: 'tool_result', tool_use_id: 'toolu_2', content: 'no', is_error: true, cache_control: EPHEMERAL },
        { type: 'text', text: 'and this', cache_control: { type: 'ephemeral', ttl: '1h' } },
        { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' }, cache_control: EPHEMERAL },
        { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' }, title: 'spec.pdf', citations: { enabled: true } },
        { type: 'document', source: { type: 'text', media_type: 'text/plain', data: '你好' }, title: 'notes' },
      ],
    },
  ],
  thinking: { type: 'enabled', budget_tokens: 2000 },
  stop_sequences: ['END'],
  metadata: { user_id: 'u-1' },
  service_tier: 'standard_only',
};
const enter = (body: object, headers: Record<string, string> = {}) => door.enter(JSON.parse(JSON.stringify(body)), headers);

describe('an Anthropic request', () => {
  test('reaches an Anthropic upstream with the same blocks, marks and signatures', () => {
    const { request } = enter(AGENT, { 'anthropic-beta': 'interleaved-thinking-2025-05-14' });
    const call = anthropic.toUpstream(request, anthropicTarget());
    const { system, messages, tools, tool_choice, thinking, stop_sequences, metadata, service_tier, max_tokens } = JSON.parse(String(call.body));
    assert.deepEqual(
      { messages, tools, tool_choice, thinking, stop_sequences, metadata, service_tier, max_tokens, system },
      {
        messages: AGENT.messages,
        tools: AGENT.tools,
        tool_choice: AGENT.tool_choice,
        thinking: AGENT.thinking,
        stop_sequences: AGENT.stop_sequences,
        metadata: AGENT.metadata,
        service_tier: AGENT.service_tier,
        max_tokens: AGENT.max_tokens,
        system: AGENT.system,
      },
    );
    assert.equal(call.headers['anthropic-beta'], 'interleaved-thinking-2025-05-14');
    assert.deepEqual(call.droppedParams, []);
  });

  test('survives being stored as JSON in between', () => {
    const { request } = enter(AGENT);
    const stored = JSON.parse(JSON.stringify(request));
    assert.equal(anthropic.toUpstream(stored, anthropicTarget()).body, anthropic.toUpstream(request, anthropicTarget()).body);
  });

  test('is pure OpenAI chat for everybody else', () => {
    const request = withoutCarriage(enter(AGENT).request);
    assert.deepEqual(request, {
      model: 'claude',
      messages: [
        {
          role: 'system',
          content: [
            { type: 'text', text: 'You are a coder.' },
            { type: 'text', text: 'Long rules.' },
          ],
        },
        { role: 'user', content: '看一下' },
        {
          role: 'assistant',
          content: 'Let me look',
          reasoning_content: '先想 🤔',
          tool_calls: [
            { id: 'toolu_1', type: 'function', function: { name: 'read', arguments: '{"path":"a","n":1}' } },
            { id: 'toolu_2', type: 'function', function: { name: 'write', arguments: '{}' } },
          ],
        },
        { role: 'tool', tool_call_id: 'toolu_1', content: [{ type: 'text', text: 'see' }] },
        { role: 'tool', tool_call_id: 'toolu_2', content: 'no' },
        { role: 'user', content: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } }] },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'and this' },
            { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
            { type: 'file', file: { filename: 'spec.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' } },
            { type: 'file', file: { filename: 'notes', file_data: 'data:text/plain;base64,5L2g5aW9' } },
          ],
        },
      ],
      max_tokens: 4000,
      stop: ['END'],
      tools: [
        {
          type: 'function',
          function: { name: 'read', description: 'Reads', parameters: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] } },
        },
        { type: 'function', function: { name: 'write', parameters: { type: 'object' } } },
      ],
      tool_choice: 'auto',
      parallel_tool_calls: false,
      user: 'u-1',
    });
  });

  test('keeps native tools, unknown fields and unknown blocks for Anthropic, and hides them from others', () => {
    const body = {
      model: 'claude',
      max_tokens: 10,
      context_management: { edits: [] },
      brand_new: { x: 1 },
      output_config: { effort: 'low', format: { type: 'json_schema', schema: { type: 'object' } } },
      tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 2 }],
      messages: [
        {
          role: 'user',
          content: [
            { type: 'search_result', source: 's', title: 't', content: [] },
            { type: 'text', text: 'hi' },
          ],
        },
      ],
    };
    const { request } = enter(body);
    const sent = JSON.parse(String(anthropic.toUpstream(request, anthropicTarget({ modelName: 'claude' })).body));
    assert.deepEqual(sent, body);
    assert.deepEqual(Object.keys(withoutCarriage(request)).sort(), ['max_tokens', 'messages', 'model', 'response_format']);
    assert.deepEqual(withoutCarriage(request).messages, [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }]);
  });

  test("gives hermes' own fields up to hermes, from body and headers", () => {
    const { ask, extended, stream, request } = enter({ ...AGENT, stream: true, session_id: 's-1', timeout: 3 }, { 'x-hermes-user-level': 'vip' });
    assert.deepEqual([ask.sessionId, ask.timeoutMs, ask.userLevel, ask.user, extended, stream], ['s-1', 3000, 'vip', 'u-1', true, true]);
    assert.ok(!JSON.stringify(request).includes('session_id'));
  });

  test('keeps integers beyond 2^53', () => {
    const text =
      '{"model":"c","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"id":9007199254740993}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]}]}';
    const { request } = door.enter(parseJson(text), {});
    assert.equal(request.messages[1]?.tool_calls?.[0]?.function.arguments, '{"id":9007199254740993}');
    assert.ok(String(anthropic.toUpstream(request, anthropicTarget()).body).includes('{"id":9007199254740993}'));
  });

  for (const [name, body, param] of [
    ['no messages', { model: 'c', max_tokens: 1 }, 'messages'],
    ['an unknown role', { messages: [{ role: 'tool', content: 'x' }] }, 'messages.0.role'],
    ['a block without a type', { messages: [{ role: 'user', content: [{ text: 'x' }] }] }, 'messages.0.content.0'],
    ['a result without its call', { messages: [{ role: 'user', content: [{ type: 'tool_result' }] }] }, 'messages.0.content'],
    ['max_tokens 0', { max_tokens: 0, messages: [{ role: 'user', content: 'x' }] }, 'max_tokens'],
    ['an odd tool_choice', { tool_choice: { type: 'x' }, messages: [{ role: 'user', content: 'x' }] }, 'tool_choice'],
  ] as const)
    test(`with ${name} is refused by name`, () =>
      assert.throws(
        () => enter(body),
        (error) => error instanceof HermesError && error.status === 400 && error.param === param,
      ));
});

const usage = {
  prompt_tokens: 1300,
  completion_tokens: 40,
  total_tokens: 1340,
  prompt_tokens_details: { cached_tokens: 800, cache_write_tokens: 300 },
  completion_tokens_details: { reasoning_tokens: 7 },
};
const completion = (message: object, finish_reason: string): ChatCompletion => ({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'gpt-4o',
  choices: [{ index: 0, message: { role: 'assistant', content: null, ...message }, finish_reason }],
  usage,
});
const CALLS = [
  { id: 'call_1', type: 'function', function: { name: 'read', arguments: '{"path":"a"}' } },
  { id: 'call_2', type: 'function', function: { name: 'write', arguments: '{}' } },
];

describe('an answer for an Anthropic client', () => {
  test('has text, thinking, calls, stop reason and usage without the cached tokens', () => {
    assert.deepEqual(door.toBody(completion({ content: 'ok', reasoning_content: '想', tool_calls: CALLS }, 'tool_calls'), {}), {
      id: 'msg_chatcmpl-1',
      type: 'message',
      role: 'assistant',
      model: 'gpt-4o',
      content: [
        { type: 'thinking', thinking: '想', signature: '' },
        { type: 'text', text: 'ok' },
        { type: 'tool_use', id: 'call_1', name: 'read', input: { path: 'a' } },
        { type: 'tool_use', id: 'call_2', name: 'write', input: {} },
      ],
      stop_reason: 'tool_use',
      stop_sequence: null,
      usage: {
        input_tokens: 200,
        cache_creation_input_tokens: 300,
        cache_read_input_tokens: 800,
        output_tokens: 40,
        output_tokens_details: { thinking_tokens: 7 },
      },
    });
  });

  test("has the upstream's own stop reason where it says the same", () => {
    const reason = (finish: string, upstreamFinishReason?: string): unknown =>
      Reflect.get(Object(door.toBody(completion({ content: 'x' }, finish), upstreamFinishReason ? { upstreamFinishReason } : {})), 'stop_reason');
    assert.deepEqual(
      [
        reason('stop'),
        reason('length'),
        reason('content_filter'),
        reason('stop', 'stop_sequence'),
        reason('stop', 'pause_turn'),
        reason('stop', 'tool_use'),
        reason('length', 'model_context_window_exceeded'),
      ],
      ['end_turn', 'max_tokens', 'refusal', 'stop_sequence', 'pause_turn', 'end_turn', 'model_context_window_exceeded'],
    );
  });

  test('is, for an Anthropic upstream, what that said', () => {
    const content = [
      { type: 'thinking', thinking: '想', signature: 's1' },
      { type: 'text', text: 'look' },
      { type: 'redacted_thinking', data: 'd' },
      { type: 'tool_use', id: 'toolu_1', name: 'read', input: { path: 'a' } },
    ];
    const answer = {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content,
      stop_reason: 'tool_use',
      stop_sequence: null,
      usage: { input_tokens: 2, cache_creation_input_tokens: 0, cache_read_input_tokens: 1, output_tokens: 3 },
    };
    const call = anthropic.toUpstream({ messages: [{ role: 'user', content: 'x' }] }, anthropicTarget());
    assert.deepEqual(door.toBody(anthropic.fromUpstream(Buffer.from(JSON.stringify(answer)), call), {}), answer);
  });

  test("errors have Anthropic's shape and types", () => {
    const type = (error: HermesError): unknown => Reflect.get(Object(Reflect.get(Object(door.toError(error, { requestId: 'r-1' })), 'error')), 'type');
    assert.deepEqual(door.toError(new HermesError('invalid_api_key', 'No.'), { requestId: 'r-1' }), {
      type: 'error',
      error: { type: 'authentication_error', message: 'No.' },
      request_id: 'r-1',
    });
    assert.deepEqual(
      (
        [
          'invalid_request',
          'model_not_allowed',
          'model_not_found',
          'rate_limit_exceeded',
          'request_too_large',
          'upstream_error',
          'overloaded',
          'deadline_exceeded',
        ] as const
      ).map((code) => type(new HermesError(code, 'x'))),
      [
        'invalid_request_error',
        'permission_error',
        'not_found_error',
        'rate_limit_error',
        'request_too_large',
        'api_error',
        'overloaded_error',
        'timeout_error',
      ],
    );
  });
});

interface Named {
  type: string;
  [field: string]: unknown;
}
/** What the writer makes of these chunks: every event named after its type. */
function written(chunks: ChatChunk[], finish: { error?: HermesError } = {}): Named[] {
  const writer = door.createWriter();
  const outcome = finish.error ? { status: 'failed' as const, error: finish.error } : { status: 'complete' as const };
  const bytes = Buffer.concat([...chunks.map((chunk) => writer.write(chunk)), writer.end(outcome, { requestId: 'r-1' })]);
  return cutEvents(bytes).map((event) => {
    const { event: name, data } = readEvent(event);
    const parsed: Named = JSON.parse(data ?? '');
    assert.equal(name, parsed.type);
    return parsed;
  });
}
/** The message that the SDK's own accumulator makes of them. */
async function accumulated(events: Named[]): Promise<Anthropic.Message> {
  const lines = new ReadableStream({
    start(controller) {
      for (const event of events) controller.enqueue(new TextEncoder().encode(`${JSON.stringify(event)}\n`));
      controller.close();
    },
  });
  return MessageStream.fromReadableStream(lines).finalMessage();
}
const chunk = (delta: Delta, more: object = {}): ChatChunk => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: null, ...more }],
});
const call = (index: number, fields: object): Delta => ({ tool_calls: [{ index, ...fields }] });
const fragment = (index: number, text: string): ChatChunk => chunk(call(index, { function: { arguments: text } }));
const opened = (index: number, name: string): ChatChunk => chunk(call(index, { id: `call_${index}`, type: 'function', function: { name, arguments: '' } }));
const FINISH = chunk({}, { finish_reason: 'tool_calls' });

describe('a stream for an Anthropic client', () => {
  test('has its named events in order, with usage that came after the finish reason', () => {
    const events = written([
      chunk({ role: 'assistant', content: '' }),
      chunk({ reasoning_content: '想' }),
      chunk({ content: 'a' }),
      chunk({ content: 'b' }),
      opened(0, 'f'),
      fragment(0, '{"x"'),
      fragment(0, ':1}'),
      FINISH,
      { ...chunk({}), choices: [], usage },
    ]);
    assert.deepEqual(
      events.map(({ type, index, delta, content_block }) => [type, index, delta ?? content_block].filter((value) => value !== undefined)),
      [
        ['message_start'],
        ['content_block_start', 0, { type: 'thinking', thinking: '', signature: '' }],
        ['content_block_delta', 0, { type: 'thinking_delta', thinking: '想' }],
        ['content_block_stop', 0],
        ['content_block_start', 1, { type: 'text', text: '' }],
        ['content_block_delta', 1, { type: 'text_delta', text: 'a' }],
        ['content_block_delta', 1, { type: 'text_delta', text: 'b' }],
        ['content_block_stop', 1],
        ['content_block_start', 2, { type: 'tool_use', id: 'call_0', name: 'f', input: {} }],
        ['content_block_delta', 2, { type: 'input_json_delta', partial_json: '{"x"' }],
        ['content_block_delta', 2, { type: 'input_json_delta', partial_json: ':1}' }],
        ['content_block_stop', 2],
        ['message_delta', { stop_reason: 'tool_use', stop_sequence: null }],
        ['message_stop'],
      ],
    );
    assert.deepEqual(events.at(-2)?.usage, {
      input_tokens: 200,
      cache_creation_input_tokens: 300,
      cache_read_input_tokens: 800,
      output_tokens: 40,
      output_tokens_details: { thinking_tokens: 7 },
    });
  });

  test('puts interleaved calls one behind the other', async () => {
    const message = await accumulated(
      written([
        chunk({ role: 'assistant' }),
        opened(0, 'f'),
        opened(1, 'g'),
        fragment(1, '{"b":'),
        fragment(0, '{"a":'),
        fragment(1, '2}'),
        fragment(0, '1}'),
        opened(2, 'h'),
        FINISH,
      ]),
    );
    assert.deepEqual(
      message.content.map((block) => (block.type === 'tool_use' ? [block.name, block.input] : [])),
      [
        ['f', { a: 1 }],
        ['g', { b: 2 }],
        ['h', {}],
      ],
    );
  });

  test('ends in one error event, without a message_stop', () => {
    const events = written([chunk({ content: 'half' })], { error: new HermesError('upstream_error', 'It broke.') });
    assert.deepEqual(events.at(-1), { type: 'error', error: { type: 'api_error', message: 'It broke.' }, request_id: 'r-1' });
    assert.ok(!events.some(({ type }) => type === 'message_stop' || type === 'message_delta'));
  });

  test('that was a whole answer says the same', async () => {
    const whole = completion(
      { content: 'ok', reasoning_content: '想', thinking_blocks: [{ type: 'thinking', thinking: '想', signature: 's' }], tool_calls: CALLS },
      'tool_calls',
    );
    const chunks: ChatChunk[] = [];
    for (const stream = spread(whole); ; ) {
      const batch = await stream.read();
      if (batch === null) break;
      chunks.push(...batch.chunks.map(({ view }) => view));
    }
    const message = await accumulated(written(chunks));
    assert.deepEqual(message.content, Reflect.get(Object(door.toBody(whole, {})), 'content'));
  });

  test('a degraded one says so first and last', () => {
    const marks = { degraded: true, original: { model: 'm' } };
    const events = written([{ ...chunk({ role: 'assistant' }), ...marks }, chunk({ content: 'x' }), { ...chunk({}, { finish_reason: 'stop' }), ...marks }]);
    assert.deepEqual(
      events.filter(({ degraded }) => degraded).map(({ type }) => type),
      ['message_start', 'message_delta'],
    );
  });

  test('any chunks are legal to the SDK and keep text and arguments', async () => {
    const piece = fc.oneof(
      fc.string({ minLength: 1, maxLength: 3 }).map((content) => ({ content })),
      fc.string({ minLength: 1, maxLength: 3 }).map((reasoning_content) => ({ reasoning_content })),
      fc.nat(3).map((index) => ({ index })),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 12 }), async (pieces) => {
        const values = new Map<number, string[]>();
        const chunks: ChatChunk[] = [];
        for (const part of pieces) {
          if (!('index' in part)) chunks.push(chunk(part));
          else {
            const list = values.get(part.index);
            if (!list) chunks.push(opened(part.index, `f${part.index}`));
            values.set(part.index, [...(list ?? []), `${chunks.length}`]);
            chunks.push(fragment(part.index, list ? `,${chunks.length}` : `{"x":[${chunks.length}`));
          }
        }
        for (const index of values.keys()) chunks.push(fragment(index, ']}'));
        const message = await accumulated(written([...chunks, FINISH]));
        const text = pieces.map((part) => ('content' in part ? part.content : '')).join('');
        assert.equal(message.content.map((block) => (block.type === 'text' ? block.text : '')).join(''), text);
        const calls = message.content.filter((block) => block.type === 'tool_use');
        assert.deepEqual(calls.map((block) => block.name).sort(), [...values.keys()].map((index) => `f${index}`).sort());
        for (const block of calls) assert.equal(Reflect.get(Object(block.input), 'x').length, values.get(Number(block.name.slice(1)))?.length);
      }),
      { numRuns: 200 },
    );
  });
});

describe('events of an Anthropic upstream', () => {
  const named = (event: Named): Buffer => Buffer.from(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  const HEAD = [
    {
      type: 'message_start',
      message: { id: 'msg_1', type: 'message', role: 'assistant', content: [], model: 'm', usage: { input_tokens: 1, output_tokens: 1 } },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'a' } },
  ];
  const TAIL = [
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'stop_sequence', stop_sequence: 'END' }, usage: { output_tokens: 2 } },
  ];
  const batch = (events: Named[]): Batch => translatedBatch(Buffer.concat(events.map(named)), [], 'anthropic-messages');

  test('are relayed, their message_delta only when all is over', () => {
    const writer = door.createWriter();
    const relayed = [HEAD, TAIL].map((events) => Buffer.from(writer.relay?.(batch(events)) ?? '').toString());
    assert.deepEqual(relayed, [HEAD.map(named).join(''), named({ type: 'content_block_stop', index: 0 }).toString()]);
    const end = Buffer.from(writer.end({ status: 'complete' }, {})).toString();
    assert.equal(end, `${named(TAIL[1] ?? { type: '' })}${named({ type: 'message_stop' })}`);
  });

  test('may go over to written ones in the middle of a block', async () => {
    const writer = door.createWriter();
    const bytes = Buffer.concat([
      writer.relay?.(batch(HEAD)) ?? Buffer.alloc(0),
      writer.write(chunk({ content: 'b' })),
      writer.write(FINISH),
      writer.end({ status: 'complete' }, {}),
    ]);
    assert.equal(writer.relay?.(batch(TAIL)), undefined);
    const events = cutEvents(bytes).map((event): Named => JSON.parse(readEvent(event).data ?? ''));
    assert.deepEqual((await accumulated(events)).content, [{ type: 'text', text: 'ab' }]);
  });

  test('without names are written, since the SDKs would pass over them', () => {
    const bytes = Buffer.from(HEAD.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''));
    assert.equal(door.createWriter().relay?.(translatedBatch(bytes, [], 'anthropic-messages')), undefined);
  });
});

describe('an Anthropic stream through the canonical form and out again', () => {
  const directory = new URL('../fixtures/anthropic/streams/', import.meta.url);
  for (const file of readdirSync(directory).filter(
    (name) => !/^(legacy|tool-name|interleaved|tool-under|tool-never|tool-with-its|counters|thinking-unsigned|two-texts)/.test(name),
  )) {
    test(file.replace('.json', '').replaceAll('-', ' '), async () => {
      const { stream }: { stream: string } = JSON.parse(readFileSync(new URL(file, directory), 'utf8'));
      const events = cutEvents(Buffer.from(stream)).flatMap((event): Named[] => {
        const { data } = readEvent(event);
        return data ? [JSON.parse(data)] : [];
      });
      const reader = anthropic.createReader(anthropic.toUpstream({ messages: [{ role: 'user', content: 'x' }], stream: true }, anthropicTarget()));
      const chunks = cutEvents(Buffer.from(stream)).flatMap((event) => {
        const read = reader.read(event);
        return read === null || read === 'end' ? [] : [read];
      });
      const known = events.filter(({ type, delta }) => type !== 'brand_new' && Reflect.get(Object(delta), 'type') !== 'citations_delta');
      const [was, is] = [await accumulated(known), await accumulated(written(chunks))];
      const refusal = file.startsWith('refusal') ? [{ type: 'text', text: 'No.' }] : undefined;
      assert.deepEqual(is.content, refusal ?? was.content);
      assert.equal(is.usage.output_tokens, was.usage.output_tokens);
    });
  }
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type Anthropic from '@anthropic-ai/sdk';
import { HermesError } from '../../src/contracts/errors.ts';
import door from '../../src/doors/anthropic-messages.ts';
import anthropic from '../../src/providers/anthropic.ts';
import { withoutCarriage } from '../../src/wire/carriage.ts';
import { parseJson } from '../../src/wire/json.ts';
import { anthropicTarget } from '../providers/anthropic-targets.ts';
import { CALLS, completion } from './anthropic-kit.ts';

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
            { type: 'text', text: 'notes\n你好' },
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
    assert.deepEqual(withoutCarriage(request).messages, [
      {
        role: 'user',
        content: [
          { type: 'text', text: 't\ns' },
          { type: 'text', text: 'hi' },
        ],
      },
    ]);
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

  test("that is a refusal ends as one, also where OpenAI's form says stop", () => {
    const answered = (message: object, finish: string): unknown[] => {
      const { content, stop_reason } = Object(door.toBody(completion(message, finish), {}));
      return [content, stop_reason];
    };
    assert.deepEqual(answered({ refusal: 'I cannot.' }, 'stop'), [[{ type: 'text', text: 'I cannot.' }], 'refusal']);
    assert.deepEqual(answered({ refusal: 'I cann' }, 'length')[1], 'max_tokens');
    assert.deepEqual(answered({ content: 'ok', refusal: null }, 'stop')[1], 'end_turn');
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

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { ChatCompletionStream } from 'openai/lib/ChatCompletionStream';
import provider from '../../src/providers/anthropic.ts';
import type { ChatChunk, ChatMessage, ChatRequest, ToolCall } from '../../src/wire/chat.ts';
import { CompletionBuilder } from '../../src/wire/collect.ts';
import { accumulateStream } from '../conformance/python-accumulator.ts';
import { complaint } from './anthropic-request-validator.ts';
import { anthropicTarget } from './anthropic-targets.ts';

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const text = fc.oneof(
  fc.constantFrom('', ' ', '\n', 'hi', '你好 👋🏽', 'ends blank  '),
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.string({ maxLength: 12 }),
);
const textPart = text.map((value) => ({ type: 'text', text: value }));
const imagePart = fc
  .constantFrom(`data:image/png;base64,${PNG}`, 'https://example.com/a.png', 'data:image/jpg;charset=x;base64,_-8')
  .map((url) => ({ type: 'image_url', image_url: { url } }));
const content = fc.oneof(text, fc.constant(null), fc.array(textPart, { maxLength: 3 }));
const toolName = fc.oneof(fc.constantFrom('get_time', 'order.query', 'order__query', '查询', 'x'.repeat(70)), fc.string({ minLength: 1, maxLength: 80 }));
const callId = fc.oneof(fc.constantFrom('call_0', 'call_1', 'functions.search:0', 'functions_search_0', ''), fc.string({ maxLength: 50 }));
const callArguments = fc.oneof(
  fc.constantFrom('', '{}', '{"id":9007199254740993}', 'null'),
  fc.dictionary(fc.string(), fc.jsonValue()).map((value) => JSON.stringify(value)),
);
const thinkingBlocks = fc.array(
  fc.oneof(
    fc.record({ type: fc.constant('thinking'), thinking: fc.string(), signature: fc.string(), position: fc.nat(3) }),
    fc.record({ type: fc.constant('redacted_thinking'), data: fc.string({ minLength: 1 }) }),
  ),
  { maxLength: 2 },
);

/** An assistant's calls with all of their results in any order, now and then with a word in between, or with some results lost. */
const toolRound = fc
  .record({
    content,
    thinking_blocks: fc.option(thinkingBlocks, { nil: undefined }),
    calls: fc.uniqueArray(fc.tuple(callId, toolName, callArguments), { selector: ([id]) => id, minLength: 1, maxLength: 3 }),
    results: fc.array(content, { minLength: 3, maxLength: 3 }),
    turned: fc.boolean(),
    lost: fc.integer({ min: 0, max: 9 }),
    between: fc.option(text, { nil: undefined, freq: 8 }),
  })
  .map(({ content: said, thinking_blocks, calls, results, turned, lost, between }): ChatMessage[] => {
    const tool_calls = calls.map(([id, name, args]) => ({ id, type: 'function', function: { name, arguments: args } }));
    const answers = calls.map(([id], index): ChatMessage => ({ role: 'tool', tool_call_id: id, content: results[index] ?? null }));
    const kept = (turned ? answers.reverse() : answers).filter((_, index) => index !== lost);
    const interjection: ChatMessage[] = between === undefined ? [] : [{ role: 'user', content: between }];
    return [
      { role: 'assistant', content: said, tool_calls, ...(thinking_blocks ? { thinking_blocks } : {}) },
      ...kept.slice(0, 1),
      ...interjection,
      ...kept.slice(1),
    ];
  });
const messages: fc.Arbitrary<ChatMessage[]> = fc
  .array(
    fc.oneof(
      fc.record({ role: fc.constantFrom('system' as const, 'developer' as const), content }).map((message): ChatMessage[] => [message]),
      fc
        .record({ role: fc.constant('user' as const), content: fc.oneof(text, fc.array(fc.oneof(textPart, imagePart), { maxLength: 3 })) })
        .map((message): ChatMessage[] => [message]),
      fc.record({ role: fc.constant('assistant' as const), content }).map((message): ChatMessage[] => [message]),
      toolRound,
    ),
    { minLength: 1, maxLength: 7 },
  )
  .map((groups) => groups.flat());

const parameters: fc.Arbitrary<Partial<ChatRequest>> = fc.record(
  {
    temperature: fc.double({ min: 0, max: 2, noNaN: true }),
    top_p: fc.double({ min: 0, max: 1, noNaN: true }),
    max_tokens: fc.integer({ min: 1, max: 100_000 }),
    max_completion_tokens: fc.integer({ min: 1, max: 100_000 }),
    stop: fc.oneof(text, fc.array(text, { maxLength: 4 })),
    stream: fc.boolean(),
    seed: fc.integer(),
    user: fc.string({ maxLength: 300 }),
    service_tier: fc.constantFrom('auto', 'default', 'flex', 'priority'),
    reasoning_effort: fc.constantFrom('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'),
    parallel_tool_calls: fc.boolean(),
    tool_choice: fc.constantFrom('auto', 'none', 'required'),
    tools: fc.array(
      toolName.map((name) => ({ type: 'function', function: { name, parameters: { type: 'object', properties: {} } } })),
      { maxLength: 3 },
    ),
    response_format: fc.constantFrom(
      { type: 'text' },
      { type: 'json_object' },
      { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object' } } },
    ),
  },
  { requiredKeys: [] },
);
const target = fc.record({
  modelName: fc.constantFrom(
    'claude-3-haiku-20240307',
    'claude-3-7-sonnet-latest',
    'claude-sonnet-4-5',
    'claude-opus-4-6',
    'claude-opus-4-7',
    'claude-sonnet-5',
    'other',
  ),
  apiVersion: fc.constantFrom(undefined, '2023-06-01', '2026-10-21'),
  maxTokens: fc.constantFrom(undefined, 16, 1024, 1025, 4096),
});

describe('any OpenAI conversation', () => {
  test('is a legal Anthropic one after translation', () => {
    fc.assert(
      fc.property(messages, parameters, target, (list, more, over) => {
        const call = provider.toUpstream({ ...more, messages: list }, anthropicTarget(over));
        assert.equal(complaint(String(call.body), over.apiVersion), undefined);
      }),
      { numRuns: 500 },
    );
  });

  test('is translated the same way each time', () => {
    fc.assert(
      fc.property(messages, parameters, (list, more) => {
        const request = { ...more, messages: list };
        const before = JSON.stringify(request);
        const first = provider.toUpstream(request, anthropicTarget());
        assert.equal(JSON.stringify(request), before, 'the request was changed');
        assert.equal(provider.toUpstream(request, anthropicTarget()).body, first.body);
      }),
      { numRuns: 200 },
    );
  });

  test('grows at its end only, so that prompt caches hold', () => {
    fc.assert(
      fc.property(messages, (list) => {
        const turns = (some: ChatMessage[]): string[] =>
          JSON.parse(String(provider.toUpstream({ messages: [...some, { role: 'user', content: 'end' }] }, anthropicTarget()).body)).messages.map(
            (turn: unknown) => JSON.stringify(turn),
          );
        const plain = list.map(
          (message): ChatMessage => (message.role === 'system' || message.role === 'developer' ? { role: 'user', content: 's' } : message),
        );
        const whole: ChatMessage[] = [...plain, { role: 'user', content: 'next' }, { role: 'assistant', content: 'ok' }];
        const before = turns(plain);
        assert.deepEqual(turns(whole).slice(0, before.length - 1), before.slice(0, -1));
      }),
      { numRuns: 300 },
    );
  });
});

interface Block {
  type: string;
  [field: string]: unknown;
}
const toolUse = fc.record({
  type: fc.constant('tool_use'),
  id: fc.stringMatching(/^toolu_[A-Za-z0-9]{4,8}$/),
  name: fc.constantFrom('get_time', 'order__query'),
  input: fc.dictionary(fc.string(), fc.jsonValue()),
});
const blocks: fc.Arbitrary<Block[]> = fc.array(
  fc.oneof(
    fc.string({ minLength: 1 }).map((value): Block => ({ type: 'text', text: value })),
    fc.record({ type: fc.constant('thinking'), thinking: fc.string(), signature: fc.string({ minLength: 1 }) }),
    fc.record({ type: fc.constant('redacted_thinking'), data: fc.string({ minLength: 1 }) }),
    toolUse,
    fc.constant<Block>({ type: 'server_tool_use', id: 'srv', name: 'web_search', input: {} }),
  ),
  { maxLength: 5 },
);
const reason = fc.constantFrom('end_turn', 'max_tokens', 'stop_sequence', 'tool_use', 'pause_turn', 'refusal', 'model_context_window_exceeded', 'brand_new');

function cut(value: string, sizes: number[]): string[] {
  const pieces: string[] = [];
  let at = 0;
  for (const size of sizes) {
    pieces.push(value.slice(at, at + size));
    at += size;
  }
  return [...pieces, value.slice(at)];
}
/** The events of an answer; fragments are cut at `sizes`, pings stand where `noise` says. */
function toEvents(list: Block[], stopReason: string, sizes: number[], noise: boolean): object[] {
  const events: object[] = [
    { type: 'message_start', message: { id: 'msg_1', role: 'assistant', model: 'm', content: [], usage: { input_tokens: 3, output_tokens: 1 } } },
  ];
  for (const [index, block] of list.entries()) {
    const delta = (fields: object): void => void events.push({ type: 'content_block_delta', index, delta: fields });
    if (noise) events.push({ type: 'ping' });
    events.push({
      type: 'content_block_start',
      index,
      content_block: {
        ...block,
        ...(block.type === 'text' ? { text: '' } : {}),
        ...(block.type === 'tool_use' ? { input: {} } : {}),
        ...(block.type === 'thinking' ? { thinking: '', signature: '' } : {}),
      },
    });
    if (block.type === 'text') for (const piece of cut(String(block.text), sizes)) delta({ type: 'text_delta', text: piece });
    if (block.type === 'tool_use') for (const piece of cut(JSON.stringify(block.input), sizes)) delta({ type: 'input_json_delta', partial_json: piece });
    if (block.type === 'thinking') {
      for (const piece of cut(String(block.thinking), sizes)) delta({ type: 'thinking_delta', thinking: piece });
      delta({ type: 'signature_delta', signature: block.signature });
    }
    events.push({ type: 'content_block_stop', index });
  }
  return [...events, { type: 'message_delta', delta: { stop_reason: stopReason }, usage: { output_tokens: 7 } }, { type: 'message_stop' }];
}
const request: ChatRequest = { messages: [{ role: 'user', content: 'hi' }], tools: [{ type: 'function', function: { name: 'order.query' } }] };
function streamOf(events: object[]): ChatChunk[] {
  const reader = provider.createReader(provider.toUpstream({ ...request, stream: true }, anthropicTarget()));
  return events.flatMap((event) => {
    const chunk = reader.read(Buffer.from(`data: ${JSON.stringify(event)}\n\n`));
    return chunk === null || chunk === 'end' ? [] : [chunk];
  });
}

describe('any Anthropic event sequence', () => {
  test('gives a stream that the accumulators of both SDKs take, with the same text and calls', async () => {
    await fc.assert(
      fc.asyncProperty(blocks, reason, fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 4 }), fc.boolean(), async (list, stopReason, sizes, noise) => {
        const chunks = streamOf(toEvents(list, stopReason, sizes, noise));
        const lines = new ReadableStream({
          start(controller) {
            for (const chunk of chunks) controller.enqueue(new TextEncoder().encode(`${JSON.stringify(chunk)}\n`));
            controller.close();
          },
        });
        const completion = await ChatCompletionStream.fromReadableStream(lines).finalChatCompletion();
        const choice = completion.choices[0];
        const texts = list.filter((block) => block.type === 'text').map((block) => block.text);
        const calls = list.filter((block) => block.type === 'tool_use');
        assert.equal(choice?.message.content ?? '', texts.join(''));
        assert.deepEqual(
          (choice?.message.tool_calls ?? []).map((call) => (call.type === 'function' ? [call.id, JSON.parse(call.function.arguments)] : [])),
          calls.map((block) => [block.id, JSON.parse(JSON.stringify(block.input))]),
        );
        assert.equal(completion.usage?.total_tokens, 10);
        const python = accumulateStream(JSON.parse(JSON.stringify(chunks)));
        assert.deepEqual([python.role, python.content ?? '', python.finish], ['assistant', texts.join(''), choice?.finish_reason]);
        assert.deepEqual(
          python.calls.map((call) => [call.id, JSON.parse(call.arguments)]),
          calls.map((block) => [block.id, JSON.parse(JSON.stringify(block.input))]),
        );
      }),
      { numRuns: 300 },
    );
  });

  test('says the same as the whole answer', () => {
    fc.assert(
      fc.property(blocks, reason, (list, stopReason) => {
        fc.pre(list.some((block) => block.type !== 'server_tool_use'));
        const builder = new CompletionBuilder();
        for (const chunk of streamOf(toEvents(list, stopReason, [1, 2], false))) builder.add(chunk);
        const answer = {
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          model: 'm',
          content: list,
          stop_reason: stopReason,
          usage: { input_tokens: 3, output_tokens: 7 },
        };
        const whole = provider.fromUpstream(Buffer.from(JSON.stringify(answer)), provider.toUpstream(request, anthropicTarget()));
        const { content: said, ...message } = builder.build().choices[0]?.message ?? { role: 'assistant' };
        const { content: wholeSaid, ...wholeMessage } = whole.choices[0]?.message ?? { role: 'assistant' };
        assert.equal(said ?? '', wholeSaid ?? '');
        assert.deepEqual(message, wholeMessage);
        assert.equal(builder.build().choices[0]?.finish_reason, whole.choices[0]?.finish_reason);
      }),
      { numRuns: 300 },
    );
  });

  test('goes back as it came: text, ids, arguments, signed thinking', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(toolUse, { selector: (block) => block.id, maxLength: 3 }),
        fc.string(),
        fc.string({ minLength: 1 }),
        (uses, said, signature) => {
          const list: Block[] = [{ type: 'thinking', thinking: '想', signature }, ...(said.trim() === '' ? [] : [{ type: 'text', text: said }]), ...uses];
          const answer = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: list, stop_reason: 'tool_use', usage: {} };
          const message = provider.fromUpstream(Buffer.from(JSON.stringify(answer)), provider.toUpstream(request, anthropicTarget())).choices[0]?.message;
          assert.ok(message);
          const results = (message.tool_calls ?? []).map((call: ToolCall): ChatMessage => ({ role: 'tool', tool_call_id: call.id, content: 'ok' }));
          const next = JSON.parse(JSON.stringify({ ...request, messages: [...request.messages, message, ...results, { role: 'user', content: 'go' }] }));
          const body = JSON.parse(String(provider.toUpstream(next, anthropicTarget()).body));
          assert.deepEqual(body.messages[1].content, JSON.parse(JSON.stringify(list)));
        },
      ),
      { numRuns: 300 },
    );
  });
});

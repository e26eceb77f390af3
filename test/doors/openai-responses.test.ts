import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { HermesError } from '../../src/contracts/errors.ts';
import door from '../../src/doors/openai-responses.ts';
import anthropic from '../../src/providers/anthropic.ts';
import type { ChatChunk } from '../../src/wire/chat.ts';
import { CompletionBuilder } from '../../src/wire/collect.ts';
import { cutEvents } from '../../src/wire/sse.ts';
import { anthropicTarget } from '../providers/anthropic-targets.ts';
import { accumulated, asked, CALL, chunk, completion, enter, finish, fragment, opened, usage, written } from './responses-kit.ts';

describe('a Responses request', () => {
  test('is a chat request', () => {
    const { request, stream } = enter({
      model: 'gpt-5',
      instructions: 'Be brief.',
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'look' },
            { type: 'input_image', image_url: 'https://example.com/a.png', detail: 'low' },
            { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' },
          ],
        },
        { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'hm' }] },
        { type: 'message', role: 'assistant', id: 'msg_1', status: 'completed', content: [{ type: 'output_text', text: 'I will look', annotations: [] }] },
        { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'read', arguments: '{"n":9007199254740993}' },
        { type: 'function_call', call_id: 'call_2', name: 'write', arguments: '' },
        { type: 'function_call_output', call_id: 'call_1', output: 'ok' },
        { type: 'function_call_output', call_id: 'call_2', output: [{ type: 'input_text', text: 'done' }] },
        { role: 'developer', content: 'go on' },
      ],
      tools: [{ type: 'function', name: 'read', description: 'Reads', parameters: { type: 'object' }, strict: true }],
      tool_choice: { type: 'function', name: 'read' },
      parallel_tool_calls: false,
      max_output_tokens: 99,
      temperature: 0.5,
      reasoning: { effort: 'low', summary: 'auto' },
      text: { format: { type: 'json_schema', name: 'x', schema: { type: 'object' }, strict: true }, verbosity: 'low' },
      stream: true,
      store: false,
      truncation: 'auto',
      user: 'u-1',
    });
    assert.equal(stream, true);
    assert.deepEqual(request, {
      model: 'gpt-5',
      messages: [
        { role: 'system', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'look' },
            { type: 'image_url', image_url: { url: 'https://example.com/a.png', detail: 'low' } },
            { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' } },
          ],
        },
        {
          role: 'assistant',
          content: 'I will look',
          reasoning_content: 'hm',
          tool_calls: [
            { id: 'call_1', type: 'function', function: { name: 'read', arguments: '{"n":9007199254740993}' } },
            { id: 'call_2', type: 'function', function: { name: 'write', arguments: '' } },
          ],
        },
        { role: 'tool', tool_call_id: 'call_1', content: 'ok' },
        { role: 'tool', tool_call_id: 'call_2', content: 'done' },
        { role: 'developer', content: 'go on' },
      ],
      stream: true,
      stream_options: { include_usage: true },
      max_completion_tokens: 99,
      temperature: 0.5,
      parallel_tool_calls: false,
      user: 'u-1',
      tools: [{ type: 'function', function: { name: 'read', description: 'Reads', parameters: { type: 'object' }, strict: true } }],
      tool_choice: { type: 'function', function: { name: 'read' } },
      verbosity: 'low',
      response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object' }, strict: true } },
      reasoning_effort: 'low',
    });
  });

  test('is kept in a session, and an answer of it leads back there', () => {
    assert.equal(enter({ input: 'hi', store: false }).ask.sessionId, undefined);
    assert.equal(enter({ input: 'hi' }).ask.sessionId, 'fresh');
    assert.equal(enter({ input: 'hi', session_id: 's-1' }).ask.sessionId, 's-1');
    assert.equal(enter({ input: 'hi', conversation: { id: 'conv 会话' } }).ask.sessionId, 'conv 会话');
    const id = Reflect.get(Object(door.toBody(completion({ content: 'x' }, 'stop'), {}, asked({}, 'conv 会话'))), 'id');
    assert.match(String(id), /^resp_/);
    assert.equal(enter({ input: 'and', previous_response_id: id }).ask.sessionId, 'conv 会话');
  });

  for (const [name, body, param] of [
    ['no input', {}, 'input'],
    ['an empty list', { input: [] }, 'input'],
    ['an unknown item', { input: [{ type: 'computer_call' }] }, 'input[0]'],
    ['an unknown role', { input: [{ role: 'tool', content: 'x' }] }, 'input[0].role'],
    ["a vendor's tool", { input: 'x', tools: [{ type: 'web_search' }] }, 'tools[0]'],
    ['background', { input: 'x', background: true }, 'background'],
    ['a response of elsewhere', { input: 'x', previous_response_id: 'resp_123' }, 'previous_response_id'],
    ['an image that is only an id', { input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'file-1' }] }] }, 'input[0].content[0]'],
  ] as const)
    test(`with ${name} is refused by name`, () =>
      assert.throws(
        () => enter(body),
        (error) => error instanceof HermesError && error.status === 400 && error.param === param,
      ));
});

describe('an answer for a Responses client', () => {
  test('has its items, status, usage and the settings of the request', () => {
    const body = { input: 'hi', instructions: 'Be brief.', temperature: 0.5, tools: [{ type: 'function', name: 'read' }], metadata: { a: 'b' } };
    const { id, output, ...rest } = Object(
      door.toBody(completion({ content: 'ok', reasoning_content: 'hm', tool_calls: [CALL] }, 'tool_calls'), {}, asked(body)),
    );
    assert.match(id, /^resp_[0-9a-f]{32}$/);
    assert.deepEqual(
      output.map(({ id: _id, ...item }: { id: string }) => item),
      [
        { type: 'reasoning', summary: [{ type: 'summary_text', text: 'hm' }] },
        { type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'ok', annotations: [], logprobs: [] }] },
        { type: 'function_call', status: 'completed', call_id: 'call_1', name: 'read', arguments: '{"a":1}' },
      ],
    );
    assert.deepEqual(rest, {
      object: 'response',
      instructions: 'Be brief.',
      max_output_tokens: null,
      metadata: { a: 'b' },
      parallel_tool_calls: true,
      previous_response_id: null,
      reasoning: { effort: null, summary: null },
      store: true,
      temperature: 0.5,
      text: { format: { type: 'text' } },
      tool_choice: 'auto',
      tools: [{ type: 'function', name: 'read' }],
      top_p: null,
      truncation: 'disabled',
      user: null,
      created_at: 1_790_000_000,
      completed_at: 1_790_000_000,
      status: 'completed',
      error: null,
      incomplete_details: null,
      model: 'gpt-4o',
      usage: {
        input_tokens: 13,
        input_tokens_details: { cached_tokens: 8, cache_write_tokens: 0 },
        output_tokens: 4,
        output_tokens_details: { reasoning_tokens: 2 },
        total_tokens: 17,
      },
    });
  });

  test('is incomplete where a limit or a filter ended it', () => {
    const ending = (finish: string): unknown[] => {
      const { status, incomplete_details } = Object(door.toBody(completion({ content: 'x' }, finish), {}));
      return [status, incomplete_details];
    };
    assert.deepEqual(ending('length'), ['incomplete', { reason: 'max_output_tokens' }]);
    assert.deepEqual(ending('content_filter'), ['incomplete', { reason: 'content_filter' }]);
  });

  test('hands signed thinking out and takes it back', () => {
    const thinking_blocks = [
      { type: 'thinking', thinking: '想', signature: 'sig+/=' },
      { type: 'redacted_thinking', data: 'd' },
    ];
    const { output } = Object(door.toBody(completion({ content: 'ok', reasoning_content: '想', thinking_blocks, tool_calls: [CALL] }, 'tool_calls'), {}));
    const { request } = enter({
      input: [{ role: 'user', content: 'hi' }, ...output, { type: 'function_call_output', call_id: 'call_1', output: 'x' }],
      store: false,
    });
    assert.deepEqual(request.messages[1], { role: 'assistant', content: 'ok', reasoning_content: '想', thinking_blocks, tool_calls: [CALL] });
  });
});

describe('a stream for a Responses client', () => {
  test('has its named events in order', () => {
    const events = written([
      chunk({ role: 'assistant', content: '' }),
      chunk({ reasoning_content: 'h' }),
      chunk({ content: 'a' }),
      chunk({ content: 'b' }),
      opened(0),
      fragment(0, '{}'),
      finish('tool_calls'),
      { ...chunk({}), choices: [], usage },
    ]);
    assert.deepEqual(
      events.map(({ type }) => type.replace('response.', '')),
      [
        'created',
        'in_progress',
        'output_item.added',
        'reasoning_summary_part.added',
        'reasoning_summary_text.delta',
        'reasoning_summary_text.done',
        'reasoning_summary_part.done',
        'output_item.done',
        'output_item.added',
        'content_part.added',
        'output_text.delta',
        'output_text.delta',
        'output_text.done',
        'content_part.done',
        'output_item.done',
        'output_item.added',
        'function_call_arguments.delta',
        'function_call_arguments.done',
        'output_item.done',
        'completed',
      ],
    );
    const { before, final } = accumulated(events);
    assert.deepEqual(before.output, final.output);
    assert.equal(final.output_text, 'ab');
    assert.equal(final.usage?.total_tokens, 17);
  });

  test('ends as failed, in one event, when its upstream breaks', () => {
    const events = written([chunk({ content: 'half' })], new HermesError('upstream_error', 'It broke.'));
    const last = events.at(-1);
    assert.ok(last?.type === 'response.failed');
    assert.deepEqual([last.response.status, last.response.error], ['failed', { code: 'upstream_error', message: 'It broke.' }]);
    assert.ok(!events.some(({ type }) => type === 'response.completed'));
    assert.deepEqual(written([], new HermesError('upstream_error', 'No.')), [
      { type: 'error', sequence_number: 0, code: 'upstream_error', message: 'No.', param: null },
    ]);
  });

  test('any chunks are legal to the SDK, and its snapshot is the final response', () => {
    const piece = fc.oneof(
      fc.string({ minLength: 1, maxLength: 3 }).map((content) => ({ content })),
      fc.string({ minLength: 1, maxLength: 3 }).map((reasoning_content) => ({ reasoning_content })),
      fc.nat(3).map((index) => ({ index })),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), fc.constantFrom('stop', 'length', 'content_filter'), (pieces, reason) => {
        const seen = new Map<number, string>();
        const chunks: ChatChunk[] = [];
        for (const part of pieces) {
          if (!('index' in part)) chunks.push(chunk(part));
          else {
            const text = seen.has(part.index) ? ',1' : '{"x":[1';
            if (!seen.has(part.index)) chunks.push(opened(part.index));
            seen.set(part.index, `${seen.get(part.index) ?? ''}${text}`);
            chunks.push(fragment(part.index, text));
          }
        }
        for (const index of seen.keys()) chunks.push(fragment(index, ']}'));
        const { before, final } = accumulated(written([...chunks, finish(reason)]));
        assert.deepEqual(before.output, final.output);
        assert.equal(final.output_text, pieces.map((part) => ('content' in part ? part.content : '')).join(''));
        const calls = final.output.filter((item) => item.type === 'function_call');
        assert.deepEqual(calls.map((item) => [item.name, item.arguments]).sort(), [...seen].map(([index, text]) => [`f${index}`, `${text}]}`]).sort());
      }),
      { numRuns: 300 },
    );
  });

  const directory = new URL('../fixtures/anthropic/streams/', import.meta.url);
  for (const file of readdirSync(directory).filter((name) => !/^(legacy|interleaved|two-texts|thinking-redacted)/.test(name)))
    test(`of an Anthropic upstream says what the whole answer says: ${file.replace('.json', '').replaceAll('-', ' ')}`, () => {
      const { stream }: { stream: string } = JSON.parse(readFileSync(new URL(file, directory), 'utf8'));
      const reader = anthropic.createReader(anthropic.toUpstream({ messages: [{ role: 'user', content: 'x' }], stream: true }, anthropicTarget()));
      const builder = new CompletionBuilder();
      const chunks = cutEvents(Buffer.from(stream)).flatMap((event) => {
        const read = reader.read(event);
        if (read === null || read === 'end') return [];
        builder.add(read);
        return [read];
      });
      const whole: { output: unknown[]; usage: unknown } = Object(door.toBody(builder.build(), {}, asked({ input: 'hi' })));
      const { before, final } = accumulated(written(chunks));
      assert.deepEqual(before.output, final.output);
      assert.deepEqual(
        final.output.map((item) => JSON.parse(JSON.stringify({ ...item, parsed: undefined }))),
        whole.output,
      );
      assert.deepEqual(final.usage, whole.usage);
    });
});

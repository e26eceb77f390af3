import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { HermesError } from '../../src/contracts/errors.ts';
import type { Batch } from '../../src/contracts/stream.ts';
import door from '../../src/doors/anthropic-messages.ts';
import anthropic from '../../src/providers/anthropic.ts';
import { translatedBatch } from '../../src/wire/batch.ts';
import type { ChatChunk } from '../../src/wire/chat.ts';
import { spread } from '../../src/wire/collect.ts';
import { cutEvents, readEvent } from '../../src/wire/sse.ts';
import { anthropicTarget } from '../providers/anthropic-targets.ts';
import { accumulated, CALLS, chunk, completion, FINISH, fragment, type Named, opened, usage, written } from './anthropic-kit.ts';

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

  test('that refuses ends as a refusal', () => {
    const events = written([chunk({ refusal: 'I ' }), chunk({ refusal: 'cannot.' }), chunk({}, { finish_reason: 'stop' })]);
    assert.deepEqual(
      events.filter(({ type }) => type === 'content_block_delta').map(({ delta }) => Object(delta).text),
      ['I ', 'cannot.'],
    );
    assert.equal(Object(events.find(({ type }) => type === 'message_delta')?.delta).stop_reason, 'refusal');
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
});

describe('any stream for an Anthropic client', () => {
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

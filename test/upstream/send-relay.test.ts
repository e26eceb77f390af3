import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { UpstreamCall } from '../../src/contracts/provider.ts';
import type { Batch } from '../../src/contracts/stream.ts';
import openai from '../../src/providers/openai.ts';
import { createRelay } from '../../src/upstream/create-relay.ts';
import type { Relay } from '../../src/upstream/relay.ts';
import { toChatEvent } from '../../src/wire/batch.ts';
import type { ChatChunk, Delta } from '../../src/wire/chat.ts';
import { CompletionBuilder } from '../../src/wire/collect.ts';
import { createNameMap } from '../../src/wire/tool-names.ts';
import { DONE, frame, type Piece, toFrame, USAGE } from '../fake-upstream.ts';

const call: UpstreamCall = { method: 'POST', url: '', headers: {}, body: '', stream: true, droppedParams: [], context: undefined };

interface Result {
  relay: Relay;
  chunks: ChatChunk[];
  wire: string;
  message: unknown;
  finish: unknown;
  error: string | undefined;
}
function run(pieces: readonly Buffer[], options: { choices?: number; context?: unknown } = {}): Result {
  const relay = createRelay({ provider: openai, call: { ...call, context: options.context }, choices: options.choices ?? 1, maxEventBytes: 100_000 });
  const batches: (Batch | undefined)[] = [];
  for (const piece of pieces) {
    if (relay.done || relay.failure) break;
    batches.push(relay.push(piece));
  }
  if (!relay.done && !relay.failure) batches.push(relay.end());
  let wire = '';
  const chunks: ChatChunk[] = [];
  const builder = new CompletionBuilder();
  for (const batch of batches) {
    if (!batch) continue;
    wire += batch.bytes ? Buffer.from(batch.bytes).toString() : batch.chunks.map((chunk) => Buffer.from(toChatEvent(chunk)).toString()).join('');
    for (const chunk of batch.chunks) {
      chunks.push(chunk.view as ChatChunk);
      builder.add(chunk.view);
    }
  }
  const [choice] = builder.build().choices;
  return { relay, chunks, wire, message: choice?.message, finish: choice?.finish_reason, error: relay.failure?.code };
}
const whole = (text: string | Buffer, options = {}): Result => run([Buffer.from(text)], options);
const data = (piece: Piece): string => JSON.stringify(toFrame(piece));
const events = (pieces: readonly Piece[], end = DONE): string => pieces.map((piece) => `data: ${data(piece)}\n\n`).join('') + end;
const call0 = (fields: object) => ({ tool_calls: [{ index: 0, ...fields }] });

const TEXT: Piece[] = [{ role: 'assistant', content: '' }, { content: '北京é😀👩‍👧 ' }, { content: 'ok "usage":{' }, 'stop', { usage: USAGE }];
const TOOLS: Piece[] = [
  { role: 'assistant', content: null },
  call0({ id: 'call_1', type: 'function', function: { name: 'a', arguments: '' } }),
  call0({ function: { arguments: '{"id":' } }),
  call0({ function: { arguments: '9007199254740993}' } }),
  'stop',
];
const FIXTURES: Record<string, string | Buffer> = {
  plain: events(TEXT),
  'no space after the colon': `${TEXT.map((piece) => `data:${data(piece)}\n\n`).join('')}data:[DONE]\n\n`,
  CRLF: `${TEXT.map((piece) => `data: ${data(piece)}\r\n\r\n`).join('')}data: [DONE]\r\n\r\n`,
  CR: `${TEXT.map((piece) => `data: ${data(piece)}\r\r`).join('')}data: [DONE]\r\r`,
  'a BOM': Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(events(TEXT))]),
  comments: `: PROCESSING\n\n:\n\n${TEXT.map((piece) => `: hm\ndata: ${data(piece)}\n\n: keep-alive\n\n`).join('')}${DONE}`,
  'data of several lines': TEXT.map((piece) => `data: ${data(piece).replace('"choices"', '\ndata: "choices"')}\n\n`).join('') + DONE,
  'other fields': `retry: 1000\n\n${TEXT.map((piece, index) => `id: ${index}\nevent: message\ndata: ${data(piece)}\n\n`).join('')}${DONE}`,
  'no [DONE]': events(TEXT, ''),
  'a [DONE] without its blank line': events(TEXT, 'data: [DONE]'),
  'empty events': `data:\n\n${TEXT.map((piece) => `data: ${data(piece)}\n\n\n\n`).join('')}data: \n\n${DONE}`,
  'usage on the finish chunk': events([...TEXT.slice(0, -2), frame([{ index: 0, delta: {}, finish_reason: 'stop' }], { usage: USAGE })]),
  'usage null on all but one': events(TEXT.map((piece, index) => (index < 4 ? { ...toFrame(piece), usage: null } : piece))),
  'usage cumulative on every one': events(
    TEXT.slice(0, -1).map((piece, index) => ({
      ...toFrame(piece),
      usage: index === 3 ? USAGE : { prompt_tokens: 10, completion_tokens: index, total_tokens: 10 + index },
    })),
  ),
};
const expected = { message: { role: 'assistant', content: '北京é😀👩‍👧 ok "usage":{' }, finish: 'stop', error: undefined, usage: USAGE };

for (const [name, fixture] of Object.entries(FIXTURES)) {
  test(`every cut of a stream with ${name} gives the same`, () => {
    const bytes = Buffer.from(fixture);
    for (let at = 0; at <= bytes.length; at++) {
      const { message, finish, error, relay, wire } = run([bytes.subarray(0, at), bytes.subarray(at)].filter((piece) => piece.length > 0));
      assert.deepEqual({ message, finish, error, usage: relay.usage }, expected, `cut at ${at}`);
      for (const event of wire.split('\n\n').slice(0, -1)) assert.match(event, /^data: ?\{[^\n\r]*\}$/, `cut at ${at}`);
    }
    const single = run([...bytes].map((byte) => Buffer.from([byte])));
    assert.deepEqual({ message: single.message, finish: single.finish, error: single.error, usage: single.relay.usage }, expected);
  });
}
test('every cut of a stream with tool calls gives the same, and says tool_calls although the upstream said stop', () => {
  const bytes = Buffer.from(events(TOOLS));
  for (let at = 1; at < bytes.length; at++) {
    const { message, finish, relay } = run([bytes.subarray(0, at), bytes.subarray(at)]);
    assert.deepEqual(message, {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'a', arguments: '{"id":9007199254740993}' } }],
    });
    assert.deepEqual([finish, relay.upstreamFinishReason], ['tool_calls', 'stop']);
  }
});

test('clean events are relayed as they came, byte for byte', () => {
  const text = events(TEXT, '');
  assert.equal(whole(text + DONE).wire, text);
  const { relay } = whole(text + DONE);
  assert.equal(relay.done, true);
});
test('a finish reason without [DONE] and [DONE] without a finish reason are whole answers', () => {
  assert.deepEqual([whole(events(TEXT.slice(0, 4), '')).error, whole(events(TEXT.slice(0, 3))).error], [undefined, undefined]);
  assert.equal(whole(events(TEXT.slice(0, 3))).finish, 'stop');
  assert.equal(whole(events(TOOLS.slice(0, 4))).finish, 'tool_calls');
});
test('closed after text, inside a call, or inside an event: broken off', () => {
  for (const text of [
    events(TEXT.slice(0, 2), ''),
    events(TOOLS.slice(0, 3), ''),
    events(TEXT.slice(0, 3), '').slice(0, -20),
    events(TEXT.slice(0, 2), 'data: {"id":"x","cho'),
  ]) {
    const result = whole(text);
    assert.equal(result.error, 'upstream_error', text.slice(-40));
    assert.equal(result.finish, null);
  }
});
test('an error event ends the stream after what came before it; flat ones and named ones, too', () => {
  const flat = '{"object":"error","message":"engine died","code":500}';
  for (const error of [
    'data: {"error":{"message":"mad","type":"server_error"}}\n\n',
    `data: ${flat}\n\n`,
    'event: error\ndata: {"message":"mad"}\n\n',
    'data: {"error":"mad"}\n\n',
  ]) {
    const after = whole(events(TEXT.slice(0, 2), error) + events(TEXT.slice(2)));
    assert.deepEqual([after.error, (after.message as { content: string }).content], ['upstream_error', '北京é😀👩‍👧 '], error);
    assert.equal(whole(events(TEXT.slice(0, 1), error)).error, 'upstream_error');
    assert.equal(whole(error).relay.begun, false);
  }
  assert.equal(whole('data: {"error":{"message":"slow down","code":"rate_limit_exceeded"}}\n\n').error, 'rate_limit_exceeded');
  assert.equal(whole(events(TEXT.map((piece) => ({ ...toFrame(piece), error: null })))).error, undefined);
});
test('a stream without anything in it is no answer', () => {
  for (const text of [
    '',
    '\n\n',
    ': hi\n\n',
    '<html>maintenance</html>\n\n',
    DONE,
    events([{ role: 'assistant', content: '' }]),
    events([{ role: 'assistant' }, 'stop']),
    events([{ role: 'assistant', content: null }, 'stop'], ''),
  ]) {
    assert.ok(['upstream_empty_answer', 'upstream_error'].includes(whole(text).error ?? ''), JSON.stringify(text));
    assert.equal(whole(text).relay.begun, false);
  }
  assert.equal(whole(events([{ role: 'assistant', content: '' }, 'stop'])).error, undefined);
  assert.equal(whole(events([{ role: 'assistant', content: null }, 'length'])).error, undefined);
});
test('an event that is not JSON is an error, wherever it stands', () => {
  assert.equal(whole(events(TEXT.slice(0, 2), 'data: oops\n\n')).error, 'upstream_error');
  assert.equal(whole(events(TEXT.slice(0, 2), 'data: {"id":\n\n')).error, 'upstream_error');
});
test('a chunk with empty choices, a choice without delta, empty id and model', () => {
  const azure = JSON.stringify({ id: '', object: '', created: 0, model: '', choices: [], prompt_filter_results: [{ prompt_index: 0 }] });
  const bare = JSON.stringify(frame([{ index: 0, finish_reason: null, content_filter_results: {} }]));
  const result = whole(`data: ${azure}\n\n${events(TEXT.slice(0, 2), '')}data: ${bare}\n\n${events(TEXT.slice(2))}`);
  assert.deepEqual({ message: result.message, finish: result.finish, error: result.error }, { message: expected.message, finish: 'stop', error: undefined });
});
test('a call without arguments gets {} before the finish, beside one that has some', () => {
  const pieces: Piece[] = [
    { role: 'assistant', content: null },
    call0({ id: 'c0', type: 'function', function: { name: 'ping', arguments: '' } }),
    { tool_calls: [{ index: 1, id: 'c1', type: 'function', function: { name: 'b', arguments: '{"x":1}' } }] },
  ];
  for (const text of [events([...pieces, 'tool_calls']), events(pieces), events([...pieces, 'tool_calls'], '')]) {
    const calls = (whole(text).message as { tool_calls: { function: { arguments: string } }[] }).tool_calls;
    assert.deepEqual(
      calls.map((one) => one.function.arguments),
      ['{}', '{"x":1}'],
    );
    assert.equal(whole(text).finish, 'tool_calls');
  }
});
test('parallel calls are told apart where the upstream gives them one index or none, whichever way the stream is cut', () => {
  const head = (id: string, name: string, at: object) => ({ ...at, id, type: 'function', function: { name, arguments: '' } });
  const rest = (text: string, at: object) => ({ ...at, function: { arguments: text } });
  const streams: object[][][] = [{ index: 0 }, {}].flatMap((at) => [
    // One after the other, all in one event, and with the id said again.
    [[head('c0', 'a', at)], [rest('{"x":', at)], [rest('1}', at)], [head('c1', 'b', at)], [rest('{"y":', at)], [rest('2}', at)]],
    [[head('c0', 'a', at), rest('{"x":1}', at), head('c1', 'b', at), rest('{"y":2}', at)]],
    [[head('c0', 'a', at)], [{ ...rest('{"x":1}', at), id: 'c0' }], [head('c1', 'b', at)], [{ ...rest('{"y":2}', at), id: 'c1' }]],
    // An id that is made up for every piece begins no call.
    [[head('c0', 'a', at)], [{ ...rest('{"x":1}', at), id: 'other' }], [head('c1', 'b', at)], [rest('{"y":2}', at)]],
  ]);
  for (const stream of streams) {
    const text = events([{ role: 'assistant', content: null }, ...stream.map((tool_calls) => ({ tool_calls }) as Delta), 'tool_calls']);
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += 7) {
      for (const context of [undefined, createNameMap(['order.query'])]) {
        const { message, chunks } = run([bytes.subarray(0, at), bytes.subarray(at)], { context });
        const calls = (message as { tool_calls: { id: string; function: object }[] }).tool_calls.map(({ id, function: called }) => ({ id, ...called }));
        assert.deepEqual(
          calls,
          [
            { id: 'c0', name: 'a', arguments: '{"x":1}' },
            { id: 'c1', name: 'b', arguments: '{"y":2}' },
          ],
          `cut at ${at} of ${text}`,
        );
        for (const piece of chunks.flatMap(({ choices }) => choices.flatMap(({ delta }) => delta?.tool_calls ?? []))) assert.ok(Number.isInteger(piece.index));
      }
    }
  }
});
test('tool_calls as the reason with an empty list of calls ends the turn', () => {
  assert.deepEqual([whole(events([{ role: 'assistant', content: 'done' }, { tool_calls: [] }, 'tool_calls'])).finish], ['stop']);
});
test('several choices: all must finish, each for its own reason', () => {
  const of = (index: number, delta: Delta, finish_reason: string | null = null): Piece => frame([{ index, delta, finish_reason }]);
  const pieces = [of(0, { role: 'assistant', content: 'a' }), of(1, { role: 'assistant', content: 'b' }), of(0, {}, 'stop'), of(1, { content: 'c' })];
  assert.equal(whole(events(pieces, ''), { choices: 2 }).error, 'upstream_error');
  assert.equal(whole(events([...pieces, of(1, {}, 'length')], ''), { choices: 2 }).error, undefined);
  assert.equal(whole(events([...pieces, of(1, {}, 'length')], ''), { choices: 2 }).relay.finished, true);
});
test('mapped names come back, whichever way the stream is cut', () => {
  const names = createNameMap(['order.query']);
  const bytes = Buffer.from(
    events([{ role: 'assistant', content: null }, call0({ id: 'c', type: 'function', function: { name: 'order__query', arguments: '{}' } }), 'tool_calls']),
  );
  for (let at = 1; at < bytes.length; at += 7) {
    const { message, wire } = run([bytes.subarray(0, at), bytes.subarray(at)], { context: { names } });
    assert.equal((message as { tool_calls: { function: { name: string } }[] }).tool_calls[0]?.function.name, 'order.query');
    assert.ok(!wire.includes('order__query'));
  }
});
test('comments alone are quiet, everything else is not', () => {
  const relay = createRelay({ provider: openai, call, choices: 1, maxEventBytes: 1000 });
  relay.push(Buffer.from(': keep-alive\n\n'));
  assert.equal(relay.quiet, true);
  relay.push(Buffer.from('data: {"id":'));
  assert.equal(relay.quiet, false);
});

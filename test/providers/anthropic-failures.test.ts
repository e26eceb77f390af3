import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { HermesError } from '../../src/contracts/errors.ts';
import type { FailureKind } from '../../src/contracts/provider.ts';
import provider from '../../src/providers/anthropic.ts';
import type { ChatRequest } from '../../src/wire/chat.ts';
import { anthropicTarget } from './anthropic-targets.ts';

const request: ChatRequest = { messages: [{ role: 'user', content: 'hi' }] };
const call = provider.toUpstream(request, anthropicTarget());
const refusal = (type: string, message: string): Buffer => Buffer.from(JSON.stringify({ type: 'error', error: { type, message }, request_id: 'req_1' }));

describe('a refusal is understood', () => {
  const rows: [number, string, string, FailureKind][] = [
    [400, 'invalid_request_error', 'messages.0: wrong', 'invalid'],
    [400, 'invalid_request_error', 'prompt is too long: 210000 tokens > 200000 maximum', 'context_overflow'],
    [400, 'invalid_request_error', 'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000', 'context_overflow'],
    [400, 'invalid_request_error', 'Your credit balance is too low to access the Anthropic API.', 'quota'],
    [400, 'invalid_request_error', 'You have reached your specified API usage limits.', 'quota'],
    [400, 'invalid_request_error', 'Output blocked by content filtering policy', 'content_policy'],
    [401, 'authentication_error', 'invalid x-api-key', 'auth'],
    [402, 'billing_error', 'pay', 'quota'],
    [403, 'permission_error', 'no', 'auth'],
    [404, 'not_found_error', 'model: x', 'model_missing'],
    [408, 'timeout_error', 'slow', 'timeout'],
    [409, 'conflict_error', 'again', 'conflict'],
    [413, 'request_too_large', 'Request exceeds the maximum size', 'invalid'],
    [422, 'unprocessable', 'hm', 'invalid'],
    [429, 'rate_limit_error', 'slow down', 'rate_limited'],
    [429, 'rate_limit_error', 'Extra usage is required for long context requests.', 'context_overflow'],
    [500, 'api_error', 'oops', 'overloaded'],
    [502, '', '', 'overloaded'],
    [504, 'timeout_error', 'slow', 'timeout'],
    [529, 'overloaded_error', 'Overloaded', 'overloaded'],
  ];
  for (const [status, type, message, kind] of rows) {
    test(`${status} ${type} "${message.slice(0, 40)}" is ${kind}`, () => {
      const failure = provider.toFailure(status, {}, refusal(type, message));
      assert.deepEqual([failure.kind, failure.status], [kind, status]);
      if (message) assert.equal(failure.message, message);
    });
  }

  test('an HTML page of a proxy in between tells its status alone', () => {
    const failure = provider.toFailure(503, {}, Buffer.from('<html>10.0.0.1 nginx</html>'));
    assert.equal(failure.kind, 'overloaded');
    assert.ok(!failure.message.includes('nginx'));
  });

  test('retry-after in all of its forms; what cannot be read is absent', () => {
    const after = (headers: Record<string, string>): number | undefined => provider.toFailure(429, headers, refusal('rate_limit_error', 'x')).retryAfterMs;
    const date = 'Mon, 30 Nov 2026 10:00:00 GMT';
    assert.deepEqual(
      ['0', '1.5', '-3', '120', 'soon', '', '2020'].map((value) => after({ 'retry-after': value })),
      [0, 1500, undefined, 120_000, undefined, undefined, 2_020_000],
    );
    assert.equal(after({ 'retry-after-ms': '250', 'retry-after': '9' }), 250);
    assert.equal(after({ 'retry-after': 'Mon, 30 Nov 2026 10:00:07 GMT', date }), 7000);
    assert.equal(after({ 'retry-after': 'Mon, 30 Nov 2026 09:00:00 GMT', date }), 0);
    assert.equal(after({}), undefined);
  });
});

describe('an error inside a 200', () => {
  const thrown = (run: () => unknown): HermesError => {
    try {
      run();
    } catch (error) {
      assert.ok(error instanceof HermesError);
      return error;
    }
    return assert.fail('nothing was thrown');
  };
  const rows: [string, FailureKind, number][] = [
    ['overloaded_error', 'overloaded', 529],
    ['api_error', 'overloaded', 500],
    ['rate_limit_error', 'rate_limited', 429],
    ['authentication_error', 'auth', 401],
    ['brand_new_error', 'overloaded', 500],
  ];
  for (const [type, kind, status] of rows) {
    test(`an event with ${type} is thrown as ${kind}`, () => {
      const error = thrown(() => provider.createReader(call).read(Buffer.from(`event: error\ndata: ${refusal(type, 'Said so').toString()}\n\n`)));
      assert.deepEqual(
        { kind: Reflect.get(Object(error.cause), 'kind'), status: Reflect.get(Object(error.cause), 'status'), message: error.message },
        { kind, status, message: 'Said so' },
      );
    });
  }

  test('a body that is an error object is thrown, too', () => {
    assert.equal(Reflect.get(Object(thrown(() => provider.fromUpstream(refusal('overloaded_error', 'x'), call)).cause), 'kind'), 'overloaded');
  });
  for (const [name, body] of [
    ['HTML', '<html></html>'],
    ['half a JSON', '{"type":"mess'],
    ['blank lines', '\n\n'],
    ['a list', '[]'],
    ['a message without content', '{"type":"message"}'],
    ['a message that says nothing and does not know why', '{"type":"message","content":[],"stop_reason":null}'],
  ])
    test(`${name} is no answer`, () => assert.equal(thrown(() => provider.fromUpstream(Buffer.from(body ?? ''), call)).code, 'upstream_empty_answer'));
});

describe('what would change the meaning is refused with 400 and its place', () => {
  const rows: [string, Partial<ChatRequest>, string][] = [
    ['n above 1', { n: 2 }, 'n'],
    [
      'arguments that are no JSON',
      { messages: [{ role: 'assistant', tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{"a":' } }] }] },
      'messages[0].tool_calls[0].function.arguments',
    ],
    [
      'arguments that are no object',
      { messages: [{ role: 'assistant', tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '[1]' } }] }] },
      'messages[0].tool_calls[0].function.arguments',
    ],
    ['audio', { messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data: 'x', format: 'wav' } }] }] }, 'messages[0].content[0]'],
    [
      'an SVG',
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/svg+xml;base64,PHN2Zy8+' } }] }] },
      'messages[0].content[0]',
    ],
    [
      'an image that is no base64',
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,***' } }] }] },
      'messages[0].content[0]',
    ],
    ["another vendor's file", { messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'file-abc' } }] }] }, 'messages[0].content[0]'],
    [
      'a choice of a tool that is not there',
      { tools: [{ type: 'function', function: { name: 'f' } }], tool_choice: { type: 'function', function: { name: 'g' } } },
      'tool_choice',
    ],
  ];
  for (const [name, over, param] of rows) {
    test(name, () => {
      assert.throws(
        () => provider.toUpstream({ ...request, ...over }, anthropicTarget()),
        (error) => error instanceof HermesError && error.status === 400 && error.param === param,
      );
    });
  }
});

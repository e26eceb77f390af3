import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FailureKind } from '../../src/contracts/provider.ts';
import openai from '../../src/providers/openai.ts';
import { toRefusal } from '../../src/upstream/refusal.ts';
import { parseRetryAfter } from '../../src/wire/retry-after.ts';

const of = (status: number, body: unknown, headers = {}) =>
  openai.toFailure(status, headers, Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)));
const error = (message: string, more: object = {}) => ({ error: { message, type: 'invalid_request_error', param: null, code: null, ...more } });

const rows: [FailureKind, number, unknown][] = [
  [
    'context_overflow',
    400,
    error("This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.", { code: 'context_length_exceeded' }),
  ],
  ['context_overflow', 400, { object: 'error', message: "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens", code: 400 }],
  ['context_overflow', 400, error('the request exceeds the available context size (4096 tokens), try increasing it')],
  ['context_overflow', 400, error('Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length')],
  ['context_overflow', 400, error('Range of input length should be [1, 30720]', { code: 'InvalidParameter' })],
  ['context_overflow', 400, error('Input token length too long: input is too long for requested model')],
  ['context_overflow', 413, error('Request too large: please reduce the length of the messages')],
  ['context_overflow', 400, error('输入内容超过模型上下文最大长度')],
  ['context_overflow', 400, error('Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)')],
  ['context_overflow', 400, { error: { code: '1261', message: 'Prompt 超长' } }],
  ['context_overflow', 413, error('Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 7000, please reduce your message size')],
  ['context_overflow', 422, { error: 'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 4000 and 100' }],
  ['context_overflow', 400, error('The input token count is 1100000 but model only supports up to 1048576')],
  ['context_overflow', 400, error('Token数量超过上限')],
  ['invalid', 413, error('Request Entity Too Large')],
  ['invalid', 400, error('the image in this request is larger than 20 MB')],
  ['invalid', 422, error('max_new_tokens must be > 0')],
  ['timeout', 504, 'Gateway Timeout'],
  ['context_overflow', 429, error('Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000.')],
  ['context_overflow', 429, error('Rate limit reached on tokens per min (TPM): Limit 30000, Used 0, Requested 30001.')],
  ['rate_limited', 429, error('Rate limit reached on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000.')],
  ['rate_limited', 429, 'Too Many Requests'],
  ['quota', 429, error('You exceeded your current quota, please check your plan and billing details.', { code: 'insufficient_quota' })],
  ['quota', 402, error('Insufficient Balance')],
  ['quota', 400, error('账户余额不足')],
  ['quota', 403, error('Arrearage: your account has an overdue payment', { code: 'Arrearage' })],
  ['content_policy', 400, error('The response was filtered due to the prompt triggering content management policy', { code: 'content_filter' })],
  ['content_policy', 400, error('Input data may contain inappropriate content.', { code: 'data_inspection_failed' })],
  ['content_policy', 400, error('Content Exists Risk')],
  ['auth', 401, error('Incorrect API key provided', { code: 'invalid_api_key' })],
  ['auth', 403, error('Country, region, or territory not supported')],
  ['auth', 400, error('API key not valid', { code: 'invalid_api_key' })],
  ['model_missing', 404, error('The model `nope` does not exist', { code: 'model_not_found' })],
  ['model_missing', 400, error('Model Not Exist')],
  ['model_missing', 404, '<html>nothing here</html>'],
  ['timeout', 408, ''],
  ['conflict', 409, ''],
  ['invalid', 400, error('Unsupported value: temperature', { param: 'temperature', code: 'unsupported_value' })],
  ['invalid', 422, { detail: [{ msg: 'Input should be a valid string', loc: ['body'] }] }],
  ['overloaded', 500, 'oops'],
  ['overloaded', 503, error('The engine is currently overloaded', { type: 'server_error' })],
  ['overloaded', 529, ''],
  ['overloaded', 302, ''],
  ['overloaded', 200, { error: { message: 'overloaded', type: 'server_error' } }],
  ['rate_limited', 200, { error: { message: 'slow', code: 'rate_limit_exceeded' } }],
  ['rate_limited', 200, { error: { message: 'slow', code: 429 } }],
  ['overloaded', 200, { error: 'something' }],
];
for (const [kind, status, body] of rows) {
  test(`${status} ${typeof body === 'string' ? body || '(empty)' : JSON.stringify(body).slice(0, 90)} is ${kind}`, () => {
    const failure = of(status, body);
    assert.equal(failure.kind, kind);
    assert.ok(failure.status >= 300 && typeof failure.message === 'string');
    const shown = toRefusal(failure);
    assert.ok(shown.message.length > 0 && shown.cause === failure);
  });
}

test('retry-after in all its forms', () => {
  const now = Date.parse('2026-11-30T12:00:00Z');
  const after = (value: string) => parseRetryAfter({ 'retry-after': value }, now);
  assert.deepEqual(['0', '1.5', '-3', '120', 'soon', '', '   ', '999999', 'NaN', 'Infinity', '1e3', '0x10', '+2', ' 7 '].map(after), [
    0,
    1500,
    undefined,
    120_000,
    undefined,
    undefined,
    undefined,
    3_600_000,
    undefined,
    undefined,
    undefined,
    undefined,
    2000,
    7000,
  ]);
  assert.equal(after('Mon, 30 Nov 2026 12:00:30 GMT'), 30_000);
  assert.equal(after('Mon, 30 Nov 2026 11:00:00 GMT'), 0);
  assert.equal(after('Mon, 30 Nov 2027 11:00:00 GMT'), 3_600_000);
  assert.equal(after('2026-11-30'), undefined);
  assert.equal(parseRetryAfter({ 'retry-after-ms': '250', 'retry-after': '9' }, now), 250);
  assert.equal(parseRetryAfter({ 'retry-after-ms': '-1', 'retry-after': '9' }, now), 9000);
  assert.equal(parseRetryAfter({ 'retry-after': 'Mon, 30 Nov 2026 12:00:30 GMT', date: 'Mon, 30 Nov 2026 12:00:20 GMT' }), 10_000);
  assert.equal(parseRetryAfter({ 'retry-after': 'Mon, 30 Nov 2026 12:00:30 GMT' }), undefined);
  assert.equal(parseRetryAfter({}, now), undefined);
});

test('a message never shows an address or a key', () => {
  for (const secret of ['http://10.1.2.3:8000/v1', '10.1.2.3', 'localhost:8000', 'https://models.internal/x', 'sk-abcdef123456']) {
    assert.ok(!toRefusal(of(400, error(`cannot do it at ${secret} now`))).message.includes(secret), secret);
  }
});

test('the numbers of an exceeded window are read where they are said', () => {
  const numbers = (status: number, message: string) => {
    const { exceeded } = of(status, error(message));
    return exceeded && [exceeded.tokens, exceeded.maximum];
  };
  const window = "This model's maximum context length is 8192 tokens.";
  assert.deepEqual(numbers(400, `${window} However, your messages resulted in 9000 tokens.`), [9000, 8192]);
  assert.deepEqual(numbers(400, `${window} However, you requested 9,000 tokens (8000 in the messages, 1000 in the completion).`), [9000, 8192]);
  assert.deepEqual(numbers(429, 'Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000.'), [40_000, 30_000]);
  assert.equal(numbers(400, window), undefined);
  assert.equal(numbers(400, 'Unsupported value: temperature'), undefined);
});

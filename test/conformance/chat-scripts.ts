import type { ChatMessage } from '../../src/wire/chat.ts';
import { type Behaviour, type FakeUpstream, type Piece, USAGE } from '../fake-upstream.ts';

const call = (index: number, id: string, name: string, args: string) => ({ index, id, type: 'function', function: { name, arguments: args } });
const LOGPROBS = {
  content: [{ token: 'Hi', logprob: -0.25, bytes: [72, 105], top_logprobs: [{ token: 'Hi', logprob: -0.25, bytes: [72, 105] }] }],
  refusal: null,
};
const choice = (index: number, delta: object, more: object = {}) => ({ index, delta, logprobs: null, finish_reason: null, ...more });
const chunk = (choices: object[], more: object = {}): Piece =>
  ({
    id: 'chatcmpl-fake',
    object: 'chat.completion.chunk',
    created: 1_790_000_000,
    model: 'fake-1',
    system_fingerprint: 'fp_1',
    service_tier: 'default',
    choices,
    ...more,
  }) as Piece;

/** Answers by the model's name, whole and streamed alike. */
const ANSWERS: Record<string, Behaviour> = {
  text: (reply) => reply.completion({ content: 'Hello, 世界 🎉' }),
  weather: (reply, { body }) =>
    body.messages.at(-1)?.role === 'tool'
      ? reply.completion({
          content: `It is ${body.messages
            .filter(({ role }) => role === 'tool')
            .map(({ content }) => content)
            .join(' and ')}.`,
        })
      : reply.completion({
          content: null,
          tool_calls: [call(0, 'call_1', 'weather', '{"city":"北京"}'), call(1, 'call_2', 'weather', '{"city":"上海"}')].map(
            ({ index: _index, ...one }) => one,
          ),
        }),
  fragments: (reply) =>
    reply.stream([
      chunk([choice(0, { role: 'assistant', content: null })]),
      chunk([choice(0, { tool_calls: [call(0, 'call_1', 'weather', '')] })]),
      chunk([choice(0, { tool_calls: [{ index: 0, function: { arguments: '{"city":' } }] })]),
      chunk([choice(0, { tool_calls: [{ index: 0, function: { arguments: '"北京"}' } }] })]),
      chunk([choice(0, { tool_calls: [call(1, 'call_2', 'weather', '')] })]),
      chunk([choice(0, { tool_calls: [{ index: 1, function: { arguments: '{"city":"上海"}' } }] })]),
      chunk([choice(0, {}, { finish_reason: 'tool_calls' })]),
    ]),
  parsed: (reply) => reply.completion({ content: '{"answer":42,"why":"世界"}' }),
  cut: (reply) => reply.completion({ content: '{"answer":4' }, { finish: 'length' }),
  refusal: (reply) => reply.completion({ content: null, refusal: 'I cannot help with that.' }),
  several: (reply, { body }) => {
    if (body.stream)
      return reply.stream([
        chunk([choice(0, { role: 'assistant', content: '' })]),
        chunk([choice(1, { role: 'assistant', content: '' })]),
        chunk([choice(0, { content: 'one' })]),
        chunk([choice(1, { content: 'two' })]),
        chunk([choice(1, { content: '!' })]),
        chunk([choice(0, {}, { finish_reason: 'stop' })]),
        chunk([choice(1, {}, { finish_reason: 'length' })]),
      ]);
    const whole = (index: number, content: string, finish_reason: string) => ({
      index,
      message: { role: 'assistant', content, refusal: null, annotations: [] },
      logprobs: null,
      finish_reason,
    });
    return reply.json({
      id: 'chatcmpl-n',
      object: 'chat.completion',
      created: 1_790_000_000,
      model: 'fake-1',
      choices: [whole(0, 'one', 'stop'), whole(1, 'two!', 'length')],
      usage: USAGE,
    });
  },
  logprobs: (reply, { body }) => {
    if (body.stream)
      return reply.stream([
        chunk([choice(0, { role: 'assistant', content: 'Hi' }, { logprobs: LOGPROBS })]),
        chunk([choice(0, {}, { finish_reason: 'stop' })]),
      ]);
    return reply.json({
      id: 'chatcmpl-l',
      object: 'chat.completion',
      created: 1_790_000_000,
      model: 'fake-1',
      service_tier: 'default',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, logprobs: LOGPROBS, finish_reason: 'stop' }],
      usage: USAGE,
    });
  },
  usage: (reply, { body }) =>
    reply.stream([
      chunk([choice(0, { role: 'assistant', content: 'Hi' })], body.stream_options?.include_usage ? { usage: null } : {}),
      chunk([choice(0, {}, { finish_reason: 'stop' })], body.stream_options?.include_usage ? { usage: null } : {}),
      ...(body.stream_options?.include_usage ? [chunk([], { usage: { ...USAGE, prompt_tokens_details: { cached_tokens: 4 } } })] : []),
    ]),
  'big-integer': (reply) =>
    reply.completion({
      content: null,
      tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'look', arguments: '{"id": 9007199254740993}' } }],
    } as Partial<ChatMessage>),
  slow: async (reply) => {
    await reply.stream([chunk([choice(0, { role: 'assistant', content: 'first' })])], { done: false, end: false });
  },
  silent: (reply) => reply.stall(),
  broken: async (reply) => {
    await reply.stream(
      [
        chunk([choice(0, { role: 'assistant', content: 'some' })]),
        { error: { message: 'The server had an error.', type: 'server_error', param: null, code: null } },
      ],
      { done: false },
    );
  },
  'error-400': (reply) => reply.error(400, "Invalid value: 'x'.", { type: 'invalid_request_error', code: 'invalid_value', param: 'temperature' }),
  'error-policy': (reply) => reply.error(400, 'Flagged by our usage policies.', { type: 'invalid_request_error', code: 'content_policy_violation' }),
  'error-422': (reply) => reply.error(422, 'Unprocessable.', { type: 'invalid_request_error' }),
  'error-context': (reply) =>
    reply.error(400, "This model's maximum context length is 8192 tokens.", {
      type: 'invalid_request_error',
      code: 'context_length_exceeded',
      param: 'messages',
    }),
  'error-429': (reply) => reply.error(429, 'Rate limit reached.', { type: 'requests', code: 'rate_limit_exceeded', headers: { 'retry-after': '30' } }),
  'error-500': (reply) => reply.error(500, 'The server had an error.'),
  'error-503': (reply) => reply.error(503, 'Overloaded.', { code: 'server_is_overloaded' }),
};

export const MODELS: readonly string[] = Object.keys(ANSWERS);

export function scriptChat(fake: FakeUpstream): void {
  for (const [name, behaviour] of Object.entries(ANSWERS)) fake.on(name, behaviour);
  fake.on('nope', (reply) => reply.error(404, 'The model `nope` does not exist.', { type: 'invalid_request_error', code: 'model_not_found' }));
}

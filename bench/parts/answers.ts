// What the upstreams of the bench say.

export const COMPLETION = JSON.stringify({
  id: 'chatcmpl-bench',
  object: 'chat.completion',
  created: 1790000000,
  model: 'bench-model',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'The order 20240515 left the warehouse this morning and will be with you tomorrow. '.repeat(6) },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: { prompt_tokens: 120, completion_tokens: 96, total_tokens: 216 },
});
export const EVENTS = 50;
export function sse(): string {
  const event = (choices: unknown, more = {}) =>
    `data: ${JSON.stringify({ id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1790000000, model: 'bench-model', system_fingerprint: 'fp_bench', choices, ...more })}\n\n`;
  const words = Array.from({ length: EVENTS }, (_, index) => event([{ index: 0, delta: { content: `word${index} ` }, logprobs: null, finish_reason: null }]));
  return `${event([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }])}${words.join('')}${event([{ index: 0, delta: {}, finish_reason: 'stop' }])}${event([], { usage: { prompt_tokens: 120, completion_tokens: 96, total_tokens: 216 } })}data: [DONE]\n\n`;
}

export const MESSAGE = JSON.stringify({
  id: 'msg_bench',
  type: 'message',
  role: 'assistant',
  model: 'bench-model',
  content: [{ type: 'text', text: 'The order 20240515 left the warehouse this morning and will be with you tomorrow. '.repeat(6) }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 120, output_tokens: 96 },
});
export function anthropicSse(): string {
  const event = (value: { type: string; [field: string]: unknown }) => `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`;
  const words = Array.from({ length: EVENTS }, (_, index) =>
    event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: `word${index} ` } }),
  );
  const message = {
    id: 'msg_bench',
    type: 'message',
    role: 'assistant',
    model: 'bench-model',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 120, output_tokens: 1 },
  };
  return [
    event({ type: 'message_start', message }),
    event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
    ...words,
    event({ type: 'content_block_stop', index: 0 }),
    event({ type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 96 } }),
    event({ type: 'message_stop' }),
  ].join('');
}

import assert from 'node:assert/strict';
import type Anthropic from '@anthropic-ai/sdk';
import { MessageStream } from '@anthropic-ai/sdk/lib/MessageStream';
import type { HermesError } from '../../src/contracts/errors.ts';
import door from '../../src/doors/anthropic-messages.ts';
import type { ChatChunk, ChatCompletion, Delta } from '../../src/wire/chat.ts';
import { cutEvents, readEvent } from '../../src/wire/sse.ts';

export const usage = {
  prompt_tokens: 1300,
  completion_tokens: 40,
  total_tokens: 1340,
  prompt_tokens_details: { cached_tokens: 800, cache_write_tokens: 300 },
  completion_tokens_details: { reasoning_tokens: 7 },
};
export const completion = (message: object, finish_reason: string): ChatCompletion => ({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'gpt-4o',
  choices: [{ index: 0, message: { role: 'assistant', content: null, ...message }, finish_reason }],
  usage,
});
export const CALLS = [
  { id: 'call_1', type: 'function', function: { name: 'read', arguments: '{"path":"a"}' } },
  { id: 'call_2', type: 'function', function: { name: 'write', arguments: '{}' } },
];

export interface Named {
  type: string;
  [field: string]: unknown;
}
/** What the writer makes of these chunks: every event named after its type. */
export function written(chunks: ChatChunk[], finish: { error?: HermesError } = {}): Named[] {
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
export async function accumulated(events: Named[]): Promise<Anthropic.Message> {
  const lines = new ReadableStream({
    start(controller) {
      for (const event of events) controller.enqueue(new TextEncoder().encode(`${JSON.stringify(event)}\n`));
      controller.close();
    },
  });
  return MessageStream.fromReadableStream(lines).finalMessage();
}
export const chunk = (delta: Delta, more: object = {}): ChatChunk => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: null, ...more }],
});
export const call = (index: number, fields: object): Delta => ({ tool_calls: [{ index, ...fields }] });
export const fragment = (index: number, text: string): ChatChunk => chunk(call(index, { function: { arguments: text } }));
export const opened = (index: number, name: string): ChatChunk =>
  chunk(call(index, { id: `call_${index}`, type: 'function', function: { name, arguments: '' } }));
export const FINISH = chunk({}, { finish_reason: 'tool_calls' });

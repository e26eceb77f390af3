import assert from 'node:assert/strict';
import { accumulateResponse } from 'openai/lib/responses/ResponseAccumulator';
import type { Response, ResponseStreamEvent } from 'openai/resources/responses/responses';
import type { Asked } from '../../src/contracts/door.ts';
import type { HermesError } from '../../src/contracts/errors.ts';
import door from '../../src/doors/openai-responses.ts';
import type { ChatChunk, ChatCompletion, Delta } from '../../src/wire/chat.ts';
import { cutEvents, readEvent } from '../../src/wire/sse.ts';

export const enter = (body: object, headers: Record<string, string> = {}) => door.enter(JSON.parse(JSON.stringify(body)), headers, () => 'fresh');
export const asked = (body: object, sessionId?: string): Asked => ({
  id: 'r-1',
  ask: sessionId === undefined ? {} : { sessionId },
  inbound: {
    form: 'openai-responses',
    method: 'POST',
    path: '/v1/responses',
    bytes: Buffer.from(JSON.stringify(body)),
    request: { messages: [] },
    remoteAddress: '',
  },
});

export const usage = {
  prompt_tokens: 13,
  completion_tokens: 4,
  total_tokens: 17,
  prompt_tokens_details: { cached_tokens: 8 },
  completion_tokens_details: { reasoning_tokens: 2 },
};
export function completion(message: object, finish_reason: string): ChatCompletion {
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1_790_000_000,
    model: 'gpt-4o',
    choices: [{ index: 0, message: { role: 'assistant', content: null, ...message }, finish_reason }],
    usage,
  };
}
export const CALL = { id: 'call_1', type: 'function', function: { name: 'read', arguments: '{"a":1}' } };

export type Named = ResponseStreamEvent & { sequence_number: number };
export function written(chunks: ChatChunk[], error?: HermesError): Named[] {
  const writer = door.createWriter(asked({ input: 'hi' }));
  const outcome = error ? { status: 'failed' as const, error } : { status: 'complete' as const };
  const bytes = Buffer.concat([...chunks.map((chunk) => writer.write(chunk)), writer.end(outcome, {})]);
  return cutEvents(bytes).map((event, index) => {
    const { event: name, data } = readEvent(event);
    const parsed: Named = JSON.parse(data ?? '');
    assert.equal(name, parsed.type);
    assert.equal(parsed.sequence_number, index);
    return parsed;
  });
}
/** What the SDK makes of the events before the last, and the last one's response. */
export function accumulated(events: Named[]): { before: Response; final: Response } {
  let snapshot: Response | undefined;
  for (const event of events.slice(0, -1)) snapshot = accumulateResponse(event, snapshot);
  const last = events.at(-1);
  assert.ok(snapshot && last && (last.type === 'response.completed' || last.type === 'response.incomplete'), last?.type);
  return { before: structuredClone(snapshot), final: accumulateResponse(last, snapshot) };
}
export const chunk = (delta: Delta, more: object = {}): ChatChunk => ({
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1_790_000_000,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: null, ...more }],
});
export const opened = (index: number): ChatChunk =>
  chunk({ tool_calls: [{ index, id: `call_${index}`, type: 'function', function: { name: `f${index}`, arguments: '' } }] });
export const fragment = (index: number, text: string): ChatChunk => chunk({ tool_calls: [{ index, function: { arguments: text } }] });
export const finish = (reason: string): ChatChunk => chunk({}, { finish_reason: reason });

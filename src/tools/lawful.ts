import type { ChatMessage, ToolCall } from '../wire/chat.ts';

/**
 * The model's message as the next call may carry it: strict servers refuse arguments that are no JSON, empty contents and
 * ids that stand twice.
 */
export function toLawful(message: ChatMessage): ChatMessage {
  const { content, tool_calls, ...rest } = message;
  const calls = (tool_calls ?? []).map((call) => ({ ...call, function: { ...call.function, arguments: toLawfulArguments(call.function.arguments) } }));
  return { ...rest, content: content === undefined || content === '' ? null : content, tool_calls: calls };
}

/** Nothing stands for no parameters; what cannot be parsed is quoted, so that the model sees what it wrote. */
export function toLawfulArguments(text: string | undefined): string {
  if (text === undefined || text.trim() === '') return '{}';
  try {
    JSON.parse(text);
    return text;
  } catch {
    return JSON.stringify({ invalid_arguments: text });
  }
}

/** Every call has an id of its own within its message. */
export function withIds(calls: readonly ToolCall[], round: number): ToolCall[] {
  const seen = new Set<string>();
  return calls.map((call, at) => {
    const id = call.id && !seen.has(call.id) ? call.id : `call_${round}_${at}`;
    seen.add(id);
    return id === call.id ? call : { ...call, id };
  });
}

/** Some servers say `stop` beside calls, or `tool_calls` beside none. */
export function toFinishReason(reason: string | null | undefined, calls: number): string {
  if (calls > 0) return 'tool_calls';
  return reason === 'tool_calls' || !reason ? 'stop' : reason;
}

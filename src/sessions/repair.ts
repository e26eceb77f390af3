import { type ChatMessage, messageText } from '../wire/chat.ts';

/** What the model is told where a call was never answered. */
const NO_RESULT = 'No result: this call was not answered.';

/**
 * A history that every upstream accepts: each tool call has its one result right behind it, each result its call, no answer
 * is empty. Works on the outgoing copy; what is stored stays as it was. The same array when nothing is amiss.
 */
export function repairTurns(messages: ChatMessage[]): ChatMessage[] {
  if (!messages.some(mayBeAmiss)) return messages;
  const repaired: ChatMessage[] = [];
  // Where the result of each open call belongs. Ids repeat where an upstream counts them from the start each turn.
  const open = new Map<string, number>();
  for (const message of messages) {
    if (message.role === 'tool') {
      const place = open.get(message.tool_call_id ?? '');
      if (place === undefined) continue;
      open.delete(message.tool_call_id ?? '');
      repaired[place] = message;
      continue;
    }
    if (isEmptyAnswer(message)) continue;
    repaired.push(message);
    for (const { id } of message.tool_calls ?? []) {
      open.set(id, repaired.length);
      repaired.push({ role: 'tool', tool_call_id: id, content: NO_RESULT });
    }
  }
  return repaired.length === messages.length && repaired.every((message, index) => message === messages[index]) ? messages : repaired;
}

function mayBeAmiss(message: ChatMessage): boolean {
  return message.role === 'tool' || message.tool_calls !== undefined || isEmptyAnswer(message);
}

function isEmptyAnswer(message: ChatMessage): boolean {
  if (message.role !== 'assistant' || (typeof message.content === 'string' && message.content !== '')) return false;
  if (message.tool_calls?.length || message.function_call) return false;
  if (message.reasoning_content || message.refusal || message.audio || message.thinking_blocks) return false;
  return Array.isArray(message.content) ? message.content.length === 0 : messageText(message) === '';
}

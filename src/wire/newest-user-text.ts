import { type ChatMessage, messageText } from './chat.ts';

/**
 * The text that rules look at: that of the newest user message, as it was sent. Tool calls and results after it belong to
 * its turn, so a tool continuation is decided by the same text, and keeps its model. '' when that message has no text.
 */
export function newestUserText(messages: readonly ChatMessage[]): string {
  for (let index = messages.length - 1; index >= 0; index--) {
    const message = messages[index];
    if (message?.role === 'user') return messageText(message);
  }
  return '';
}

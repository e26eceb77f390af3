import type { ChatMessage } from '../wire/chat.ts';
import { messageText } from '../wire/chat.ts';

const BEYOND_ASCII = /[^\p{ASCII}]/u;

/** NFKC and lower case; normalised again because lower-casing can decompose (`İ`). ASCII, the common case, is only lower-cased. */
export function normaliseText(text: string): string {
  return BEYOND_ASCII.test(text) ? text.normalize('NFKC').toLowerCase().normalize('NFKC') : text.toLowerCase();
}

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

import type { StoredMessage } from '../contracts/cold-store.ts';
import type { ChatMessage, ContentPart } from '../wire/chat.ts';

/**
 * Is what the caller sends again the message that we stored? Clients write a text as a string or as parts, trim it, drop
 * what they do not know (reasoning, refusals, annotations); none of that makes another message of it.
 * `before`: text of tool rounds that the caller saw as the beginning of this answer.
 */
export function sameMessage(stored: StoredMessage, sent: ChatMessage, before = ''): boolean {
  const own = stored.message;
  if (own.role !== sent.role) return false;
  if (own.role === 'assistant') return sameCalls(own, sent) && sameAnswer(stored, sent, before);
  if (own.role === 'tool' && own.tool_call_id !== sent.tool_call_id) return false;
  return sameContent(own.content, sent.content);
}

/** A mixed answer's server-side calls are hidden from the caller: it has some of our calls, and at least one. */
function sameCalls(own: ChatMessage, sent: ChatMessage): boolean {
  const ours = own.tool_calls ?? [];
  const theirs = sent.tool_calls ?? [];
  if (ours.length === 0 || theirs.length === 0) return ours.length === theirs.length;
  return theirs.every((call) => ours.some((other) => other.id === call.id));
}

function sameAnswer(stored: StoredMessage, sent: ChatMessage, before: string): boolean {
  const own = stored.message.content;
  if (sameContent(own, sent.content)) return true;
  const theirs = textOf(sent.content).trim();
  const ours = textOf(own).trim();
  if (before !== '' && (theirs === `${before}${textOf(own)}`.trim() || theirs === `${before.trim()}\n${ours}`)) return true;
  // The caller broke it off: it saw the beginning of what hermes had read.
  return stored.partial === true && theirs !== '' && (ours.startsWith(theirs) || theirs.startsWith(ours));
}

function sameContent(one: ChatMessage['content'], other: ChatMessage['content']): boolean {
  if (one === other) return true;
  if (media(one) !== media(other)) return false;
  const [first, second] = [textOf(one), textOf(other)];
  return first === second || first.trim() === second.trim();
}

function textOf(content: ChatMessage['content']): string {
  if (!Array.isArray(content)) return content ?? '';
  return content
    .filter((part) => typeof part.text === 'string')
    .map((part) => part.text)
    .join('\n');
}

function media(content: ChatMessage['content']): string {
  if (!Array.isArray(content)) return '';
  const others: ContentPart[] = content.filter((part) => typeof part.text !== 'string');
  return others.length === 0 ? '' : JSON.stringify(others);
}

import type { StoredMessage } from '../contracts/cold-store.ts';
import type { ChatMessage, ContentPart, ToolCall } from '../wire/chat.ts';
import { withMaker } from '../wire/maker.ts';

/** A session as a turn finds it. */
export interface SessionState {
  /** Cold's version that this is; a commit on any other is told so. */
  version: number;
  system: StoredMessage[];
  /** Oldest first, within the window. */
  messages: StoredMessage[];
  /** Of each message, where cold was read: what a differing history is told by. */
  sequences?: number[];
  tier: 'hot' | 'cold' | 'miss';
}

export const EMPTY: SessionState = Object.freeze({ version: 0, system: [], messages: [], sequences: [], tier: 'miss' });

/** Without cold's sequence number. */
export function bare({ message, tokens, partial, degraded }: StoredMessage): StoredMessage {
  return { message, tokens, ...(partial ? { partial } : {}), ...(degraded ? { degraded } : {}) };
}

/** A copy that a plugin may change in place: the hot store's own stays as it is. */
export function copyMessage(original: ChatMessage): ChatMessage {
  const message = withMaker(original);
  const { content, tool_calls } = message;
  if (typeof content !== 'object' && tool_calls === undefined) return { ...message };
  return {
    ...message,
    ...(Array.isArray(content) ? { content: content.map(copyPart) } : {}),
    ...(tool_calls ? { tool_calls: tool_calls.map(copyCall) } : {}),
  };
}

function copyPart(part: ContentPart): ContentPart {
  return { ...part, ...(part.image_url ? { image_url: { ...part.image_url } } : {}) };
}

function copyCall(call: ToolCall): ToolCall {
  return { ...call, function: { ...call.function } };
}

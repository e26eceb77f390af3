import type { StoredMessage } from '../contracts/cold-store.ts';
import type { ChatMessage } from '../wire/chat.ts';

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
  return withMarks(message, tokens, { partial, degraded });
}

export interface Marks {
  partial?: boolean | undefined;
  degraded?: boolean | undefined;
}
export function withMarks(message: ChatMessage, tokens: number, { partial, degraded }: Marks = {}): StoredMessage {
  const stored: StoredMessage = { message, tokens };
  if (partial) stored.partial = true;
  if (degraded) stored.degraded = true;
  return stored;
}

import type { StoredMessage } from '../contracts/cold-store.ts';

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

import type { ChatMessage } from './chat.ts';

/**
 * Where the newest `max` messages of a history begin, moved forward so that no turn is cut: a window begins with a user
 * message. A newest turn that is longer by itself is cut between a tool exchange and the next, never inside one.
 * `cut`: the list itself has lost its beginning already.
 */
export function windowStart(messages: readonly { message: ChatMessage }[], max: number, cut = false): number {
  const { length } = messages;
  const earliest = Math.max(0, length - max);
  if (length === 0 || (earliest === 0 && !cut)) return 0;
  const role = (index: number): string | undefined => messages[index]?.message.role;
  for (let i = earliest; i < length; i++) if (role(i) === 'user' && role(i - 1) !== 'user') return i;
  for (let i = earliest; i < length; i++) if (role(i) !== 'tool') return i;
  let start = length - 1;
  while (start > 0 && role(start) === 'tool') start--;
  return start;
}

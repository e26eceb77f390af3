import type { StoredMessage } from '../contracts/cold-store.ts';
import type { ChatMessage } from '../wire/chat.ts';
import { sameMessage } from './same-message.ts';

/** How a request's messages (without system messages) lie over the stored history. */
export interface Overlap {
  /** So many of the stored messages stay; fewer than there are when the caller's history differs from here on. */
  keep: number;
  /** What is new, or the caller's version from the difference on. */
  fresh: ChatMessage[];
  /** Nothing that was sent is in the history: where there is more of it than was looked at, look further back. */
  lost: boolean;
}

interface Walk {
  /** So many sent messages, from `from` on, are stored ones. */
  matched: number;
  from: number;
  /** The stored message that each of them would be followed by. */
  next: number[];
  /** The stored history was walked to its end. */
  clean: boolean;
}

/**
 * The caller sends what is new, the whole conversation, its tail, or a history that differs. Only one with an answer in it
 * tells a history: the same question alone is asked anew.
 */
export function findOverlap(stored: readonly StoredMessage[], sent: readonly ChatMessage[]): Overlap {
  const lastAnswer = sent.findLastIndex((message) => message.role === 'assistant');
  if (lastAnswer < 0 || stored.length === 0) return answeredAnew(stored, sent) ?? { keep: stored.length, fresh: [...sent], lost: false };
  const best = bestWalk(stored, sent, lastAnswer);
  if (best?.clean) return { keep: stored.length, fresh: sent.slice(best.from + best.matched), lost: false };
  // An answer at the very end, and nowhere else, is one that the caller has begun for the model.
  const begun = sent.findIndex((message) => message.role === 'assistant');
  if (sent.slice(begun).every((message) => message.role === 'assistant')) return { keep: stored.length, fresh: [...sent], lost: false };
  if (best === undefined) return { keep: 0, fresh: [...sent], lost: true };
  // A question that is asked again is asked: what follows the last answer is new even where it is stored.
  const same = Math.min(best.matched, lastAnswer + 1);
  return { keep: best.next[same] ?? 0, fresh: sent.slice(same), lost: same === 0 };
}

/**
 * Results of calls that have their results already: what came of those is superseded, or the caller's would have no place. Others of the same
 * answer's calls stay.
 */
function answeredAnew(stored: readonly StoredMessage[], sent: readonly ChatMessage[]): Overlap | undefined {
  const given = new Set(sent.flatMap(({ role, tool_call_id }) => (role === 'tool' && tool_call_id !== undefined ? [tool_call_id] : [])));
  if (given.size === 0) return undefined;
  const called = stored.findLastIndex(({ message }) => message.tool_calls?.some(({ id }) => given.has(id)));
  if (called < 0) return undefined;
  const keep = called + 1;
  const end = stored.findIndex(({ message }, index) => index >= keep && message.role !== 'tool');
  const results = stored.slice(keep, end < 0 ? stored.length : end).map(({ message }) => message);
  const isGiven = ({ tool_call_id }: ChatMessage): boolean => given.has(tool_call_id ?? '');
  return results.some(isGiven) ? { keep, fresh: [...results.filter((result) => !isGiven(result)), ...sent], lost: false } : undefined;
}

/** The longest that reaches the history's end; else the longest, and of equals the one that would reach it. */
function bestWalk(stored: readonly StoredMessage[], sent: readonly ChatMessage[], lastAnswer: number): Walk | undefined {
  let best: Walk | undefined;
  const offer = (walk: Walk, aligned: boolean): void => {
    const better =
      best === undefined || (walk.clean !== best.clean ? walk.clean : walk.matched > best.matched || (walk.matched === best.matched && !walk.clean && aligned));
    if (better) best = walk;
  };
  for (let start = 0; start < stored.length; start++) {
    const walk = walkFrom(stored, start, sent, 0);
    if (walk.matched > 0) offer(walk, stored.length - start === lastAnswer + 1);
  }
  // The history may have lost its beginning to the window: it then begins somewhere within what was sent.
  for (let from = 1; from < sent.length; from++) {
    const walk = walkFrom(stored, 0, sent, from);
    if (walk.matched > 0 && walk.clean) offer(walk, false);
  }
  return best;
}

function walkFrom(stored: readonly StoredMessage[], start: number, sent: readonly ChatMessage[], from: number): Walk {
  const next = [start];
  let here = start;
  let matched = 0;
  let hidden = '';
  while (here < stored.length) {
    const own = stored[here] as StoredMessage;
    const theirs = sent[from + matched];
    if (theirs && sameMessage(own, theirs, hidden)) {
      here += 1;
      matched += 1;
      hidden = '';
      next.push(here);
      continue;
    }
    const end = roundEnd(stored, here);
    if (matched === 0 || end === undefined) break;
    // A round that hermes ran by itself (or whose messages the client does not keep): the caller never saw it.
    hidden += typeof own.message.content === 'string' ? own.message.content : '';
    here = end;
  }
  return { matched, from, next, clean: here === stored.length };
}

/** Where a finished tool round that begins here ends; undefined when none does. A single result may be one's of a mixed answer. */
function roundEnd(stored: readonly StoredMessage[], at: number): number | undefined {
  const message = stored[at]?.message;
  if (message?.role === 'tool') return at + 1;
  const open = new Set(message?.tool_calls?.map((call) => call.id));
  if (open.size === 0) return undefined;
  let end = at + 1;
  for (; stored[end]?.message.role === 'tool'; end++) open.delete(stored[end]?.message.tool_call_id ?? '');
  return open.size === 0 ? end : undefined;
}

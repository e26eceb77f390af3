import type { ChatMessage } from './chat.ts';
import { isRecord, stringifyJson } from './json.ts';
import { STORED_MAKER, withMaker } from './maker.ts';
import { sameJson } from './same-json.ts';

/** A message as a session keeps it. */
export interface KeptMessage {
  readonly message: ChatMessage;
  readonly tokens: number;
}

/**
 * A history goes through the pipeline as copies, which plugins may change in place. Each copy carries what it is a copy of, as symbols
 * that no wire ever sees: as long as it says the same, its tokens are known, and its text, which is written once for all its turns.
 * One with a role and a text and nothing else, as nearly all are, carries all of that itself: the originals of a long history lie all over
 * the memory, and would have to be fetched once more by each step.
 */
const KEPT = Symbol('kept');
const TEXT = Symbol('text');
const TOKENS = Symbol('tokens');
const PLAIN = Symbol('plain');
const ROLE = Symbol('role');
const CONTENT = Symbol('content');
/** With what is known of it besides. */
interface Kept extends KeptMessage {
  [TEXT]?: string | undefined;
  [PLAIN]?: boolean;
}
interface Recalled extends ChatMessage {
  [KEPT]?: Kept;
  [TEXT]?: string | undefined;
  [TOKENS]?: number | undefined;
  [ROLE]?: string | undefined;
  /** Of a plain one only. */
  [CONTENT]?: string | undefined;
}

export function recall(kept: Kept): ChatMessage {
  const { message, tokens } = kept;
  const { role, content } = message;
  // The symbols first: a member that is added to a spread object gives it a shape of its own in Node 20 (1 µs, and every access after).
  const copy: Recalled =
    isPlain(kept) && typeof content === 'string'
      ? { [KEPT]: kept, [TEXT]: kept[TEXT], [TOKENS]: tokens, [ROLE]: role, [CONTENT]: content, role, content }
      : // Said for all: where copies are spread over each other, one's symbols must not vouch for another.
        { [KEPT]: kept, [TEXT]: undefined, [TOKENS]: undefined, [ROLE]: undefined, [CONTENT]: undefined, ...copyMessage(message) };
  return copy;
}

/** `stringifyJson`, but a recalled message is written only once. */
export function writeRecalled(value: unknown): string {
  if (!isRecord(value) || !isAsKept(value as Recalled)) return stringifyJson(value);
  const copy = value as Recalled;
  return copy[TEXT] ?? writeOnce(copy, copy[KEPT] as Kept);
}

function writeOnce(copy: ChatMessage, kept: Kept): string {
  kept[TEXT] ??= stringifyJson(copy);
  return kept[TEXT];
}

/** Undefined of a message that no session gave, or that says something else since. */
export function keptOf(message: Recalled): KeptMessage | undefined {
  return isAsKept(message) ? message[KEPT] : undefined;
}

/** The tokens of `keptOf`. */
export function keptTokens(message: Recalled): number | undefined {
  return isAsKept(message) ? (message[TOKENS] ?? message[KEPT]?.tokens) : undefined;
}

function isAsKept(copy: Recalled): boolean {
  const said = copy[CONTENT];
  if (said !== undefined) return copy.content === said && copy.role === copy[ROLE] && membersOf(copy) === 2;
  const original = copy[KEPT]?.message;
  if (original === undefined) return false;
  for (const key in copy) if (copy[key] !== original[key] && !sameJson(copy[key], original[key])) return false;
  for (const key in original) if (!(key in copy) && key !== STORED_MAKER) return false;
  return true;
}

/** Without the array that Object.keys makes: this runs for every message of a history. */
function membersOf(message: ChatMessage): number {
  let members = 0;
  for (const _ in message) members++;
  return members;
}

/** A role and a text, nothing else. */
function isPlain(kept: Kept): boolean {
  if (kept[PLAIN] === undefined) {
    // Now, so that kept messages have one shape, or two, but not a third.
    kept[TEXT] = undefined;
    const [first, second, ...more] = Object.keys(kept.message);
    kept[PLAIN] = first === 'role' && second === 'content' && more.length === 0 && typeof kept.message.content === 'string';
  }
  return kept[PLAIN];
}

/** A copy that may be changed in place, however deep: the original stays as it is. */
export function copyMessage(original: ChatMessage): ChatMessage {
  return copyRecord(withMaker(original));
}

/** Spread, since its members keep their places (and `__proto__` is data like any other); only what is there is set anew. */
function copyRecord<T extends Record<string, unknown>>(record: T): T {
  const copy: Record<string, unknown> = { ...record };
  for (const key of Object.keys(copy)) {
    const value = copy[key];
    if (typeof value === 'object' && value !== null) copy[key] = copyJson(value);
  }
  return copy as T;
}

function copyJson(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copyJson);
  return isRecord(value) ? copyRecord(value) : value;
}

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
 * A history goes through the pipeline as copies, which plugins may change in place. Each copy carries what it is a copy of, as a symbol
 * that no wire ever sees: as long as it says the same, its tokens are known, and its text, which is written once for all its turns.
 */
const KEPT = Symbol('kept');
const TEXT = Symbol('text');
const PLAIN = Symbol('plain');
/** With what is known of it besides. */
interface Kept extends KeptMessage {
  [TEXT]?: string;
  /** A role and a text, nothing else: nearly all are. */
  [PLAIN]?: boolean;
}
interface Recalled extends ChatMessage {
  [KEPT]?: Kept;
}

export function recall(kept: KeptMessage): ChatMessage {
  const { message } = kept;
  // The symbol first: a member that is added to a spread object gives it a shape of its own in Node 20 (1 µs, and every access after).
  const copy: Recalled = isPlain(kept) ? { [KEPT]: kept, role: message.role, content: message.content ?? null } : { [KEPT]: kept, ...copyMessage(message) };
  return copy;
}

/** `stringifyJson`, but a recalled message is written only once. */
export function writeRecalled(value: unknown): string {
  const kept = isRecord(value) ? keptOf(value as Recalled) : undefined;
  if (kept === undefined) return stringifyJson(value);
  kept[TEXT] ??= stringifyJson(value);
  return kept[TEXT];
}

/** Undefined of a message that no session gave, or that says something else since. */
export function keptOf(message: Recalled): Kept | undefined {
  const kept = message[KEPT];
  return kept !== undefined && saysTheSame(message, kept) ? kept : undefined;
}

function saysTheSame(copy: ChatMessage, kept: Kept): boolean {
  const original = kept.message;
  if (isPlain(kept)) return copy.content === original.content && copy.role === original.role && membersOf(copy) === 2;
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

function isPlain(kept: Kept): boolean {
  if (kept[PLAIN] === undefined) {
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

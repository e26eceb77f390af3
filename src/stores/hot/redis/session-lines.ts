import { LRUCache } from 'lru-cache';
import type { StoredMessage } from '../../../contracts/cold-store.ts';
import type { HotSession } from '../../../contracts/hot-store.ts';
import { windowStart } from '../../../wire/history-window.ts';
import { isRecord, parseJson, stringifyJson } from '../../../wire/json.ts';

/**
 * A session as people can read it (`redis-cli LRANGE key 0 -1`) and as the scripts can cut it: a list of one JSON text a message, oldest first,
 * and last its head. The scripts add and drop whole lines and never decode a message (their JSON library turns `[]` into `{}` and
 * rounds numbers). Each write has a stamp of its own: who knows it knows the rest.
 *
 *     {"role":"user","tokens":12,"message":{…}}
 *     {"role":"assistant","tokens":60,"message":{…}}
 *     {"version":7,"stamp":"…","system":[…]}
 */
export function toHead({ version, system }: Pick<HotSession, 'version' | 'system'>, stamp: string): string {
  return `{"version":${version},"stamp":${JSON.stringify(stamp)},"system":${stringifyJson(system)}}`;
}
export function toLine({ message, ...facts }: StoredMessage): string {
  // The role comes first: the script reads it there.
  return stringifyJson({ role: message.role, ...facts, message });
}
function parseLine(line: string): StoredMessage {
  const { role: _, ...stored } = parseJson(line) as StoredMessage & { role: string };
  if (!isRecord(stored.message)) throw new SyntaxError('the line is no message');
  return stored;
}
function parseHead(line: string): { version: number; stamp: string; system: StoredMessage[] } {
  const head = parseJson(line);
  if (!isRecord(head) || typeof head.version !== 'number' || !Array.isArray(head.system)) throw new SyntaxError('the list is no session');
  return { version: head.version, stamp: String(head.stamp), system: head.system };
}

interface Known {
  stamp: string;
  session: HotSession;
  /** Of each message. */
  lines: readonly string[];
  /** Characters of the system messages. */
  systemLength: number;
}

const MOST_BYTES = 64 * 1024 ** 2;
/** What nobody has asked for so long is let go. */
const KEPT_MS = 600_000;
/** Of a message, beside its line three times (itself, what it says, and that as it is written for an upstream), two bytes a letter at most. */
const MESSAGE_BYTES = 300;
const LETTER_BYTES = 6;

/**
 * What this process has read and written last of each session. It remembers what was written under a stamp, never what Redis holds now: that
 * is asked every time. What another instance has added is parsed alone. What it hands out is its own: callers copy before they change.
 */
export class KnownSessions {
  readonly #known: LRUCache<string, Known>;

  constructor(mostBytes = MOST_BYTES) {
    this.#known = new LRUCache({ maxSize: mostBytes, maxEntrySize: mostBytes, sizeCalculation: sizeOf, ttl: KEPT_MS, updateAgeOnGet: true });
  }

  /** The session, as long as Redis has it with this stamp. */
  get(key: string): { readonly stamp: string; readonly session: HotSession } | undefined {
    return this.#known.get(key);
  }

  /** Throws a SyntaxError where the list is no session. */
  parse(key: string, list: readonly string[]): HotSession {
    const head = list.at(-1) ?? '';
    const { version, stamp, system } = parseHead(head);
    const lines = list.slice(0, -1);
    const session = { version, system, messages: readLines(lines, this.#known.get(key)) };
    this.#known.set(key, { stamp, session, lines, systemLength: head.length });
    return session;
  }

  /** A turn was added behind what had the stamp `before`. */
  add(key: string, before: unknown, { version, system }: Pick<HotSession, 'version' | 'system'>, turn: Written, maxMessages: number): void {
    const known = this.#known.get(key);
    if (known === undefined || known.stamp !== before) {
      this.#known.delete(key);
      return;
    }
    const messages = known.session.messages.concat(turn.messages);
    const start = windowStart(messages, maxMessages);
    const lines = known.lines.concat(turn.lines);
    const session = { version, system, messages: messages.slice(start) };
    this.#known.set(key, { stamp: turn.stamp, session, lines: lines.slice(start), systemLength: turn.head.length });
  }

  forget(key: string): void {
    this.#known.delete(key);
  }
}
/** A turn as it went into the list. */
export interface Written {
  stamp: string;
  messages: readonly StoredMessage[];
  lines: readonly string[];
  head: string;
}

/** A window moves on: where its first line stood before, the others followed. */
function readLines(lines: readonly string[], before: Known | undefined): StoredMessage[] {
  const from = before ? before.lines.indexOf(lines[0] ?? '') : -1;
  return lines.map((line, index) => {
    const known = from >= 0 && before?.lines[from + index] === line ? before.session.messages[from + index] : undefined;
    return known ?? parseLine(line);
  });
}

function sizeOf({ lines, systemLength }: Known): number {
  return lines.reduce((total, line) => total + LETTER_BYTES * line.length + MESSAGE_BYTES, LETTER_BYTES * systemLength + MESSAGE_BYTES);
}

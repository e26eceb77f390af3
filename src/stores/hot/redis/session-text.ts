import { LRUCache } from 'lru-cache';
import type { StoredMessage } from '../../../contracts/cold-store.ts';
import type { HotSession } from '../../../contracts/hot-store.ts';
import { parseJson, stringifyJson } from '../../../wire/json.ts';

/**
 * A session as people can read it in redis-cli and as the script can cut it: JSON with one line a message. JSON texts hold no
 * raw line breaks, so the script appends and drops whole lines and never decodes a message (its JSON library turns `[]` into
 * `{}` and rounds numbers). Line 1 the version, 2 the system messages, 3 and the last are brackets.
 *
 *     {"version":7,
 *     "system":[…],
 *     "messages":[
 *     {"role":"user","tokens":12,"message":{…}},
 *     {"role":"assistant","tokens":60,"message":{…}}
 *     ]}
 */
export function toSessionText({ version, system, messages }: HotSession): string {
  return `{"version":${version},\n"system":${stringifyJson(system)},\n"messages":[\n${toLines(messages)}\n]}`;
}
function toLines(messages: readonly StoredMessage[]): string {
  return messages.map(toLine).join(',\n');
}
function toLine({ message, ...facts }: StoredMessage): string {
  // The role comes first: the script reads it there.
  return stringifyJson({ role: message.role, ...facts, message });
}
function parseLine(line: string): StoredMessage {
  const { role: _, ...stored } = parseJson(line) as StoredMessage & { role: string };
  return stored;
}

export function parseSessionText(text: string): HotSession {
  const { version, system, messages } = parseJson(text) as Omit<HotSession, 'messages'> & { messages: (StoredMessage & { role: string })[] };
  return { version, system, messages: messages.map(({ role: _, ...stored }) => stored) };
}

interface Read {
  systemLine: string;
  system: StoredMessage[];
  /** Each without the comma behind it. */
  lines: readonly string[];
  messages: readonly StoredMessage[];
}

const VERSION = /^\{"version":(\d+),$/;
const SYSTEM = /^"system":(.+),$/;
const MOST_BYTES = 64 * 1024 ** 2;
/** Of a line, beside three times its text (itself, its message, and that as it is written for an upstream). */
const LINE_BYTES = 300;

/**
 * What this process has read and written last of each session, line by line: a turn adds two messages to fifty, and only what is new is
 * parsed. It remembers what texts say, never what Redis holds. What it hands out is its own: callers copy before they change.
 */
export class SessionLines {
  readonly #known: LRUCache<string, Read>;

  constructor(mostBytes = MOST_BYTES) {
    this.#known = new LRUCache({ maxSize: mostBytes, maxEntrySize: mostBytes, sizeCalculation: sizeOf });
  }

  /** Throws a SyntaxError where the text is no session. */
  parse(key: string, text: string): HotSession {
    const [head = '', systemLine = '', open, ...rest] = text.split('\n');
    const version = VERSION.exec(head)?.[1];
    if (version === undefined || open !== '"messages":[' || rest.pop() !== ']}') return parseSessionText(text);
    const before = this.#known.get(key);
    const sameSystem = before?.systemLine === systemLine;
    const system = sameSystem ? before.system : parseSystem(systemLine);
    if (system === undefined) return parseSessionText(text);
    const { lines, messages } = readLines(rest.filter(Boolean).map(withoutComma), before);
    this.#known.set(key, { systemLine: sameSystem ? before.systemLine : flat(systemLine), system, lines, messages });
    return { version: Number(version), system, messages };
  }

  /** The lines of a turn that is added. */
  add(key: string, turn: readonly StoredMessage[]): string {
    const added = turn.map(toLine);
    const before = this.#known.get(key);
    if (before) this.#known.set(key, { ...before, lines: [...before.lines, ...added], messages: [...before.messages, ...turn] });
    return added.join(',\n');
  }
}

/** A window moves on: where its first line stood before, the others followed. */
function readLines(texts: readonly string[], before: Read | undefined): { lines: string[]; messages: StoredMessage[] } {
  const from = before ? before.lines.indexOf(texts[0] ?? '') : -1;
  const lines: string[] = [];
  const messages: StoredMessage[] = [];
  for (const [index, text] of texts.entries()) {
    const line = from < 0 ? undefined : before?.lines[from + index];
    const known = line === text ? before?.messages[from + index] : undefined;
    lines.push(line !== undefined && known ? line : flat(text));
    messages.push(known ?? parseLine(text));
  }
  return { lines, messages };
}

function parseSystem(line: string): StoredMessage[] | undefined {
  const text = SYSTEM.exec(line)?.[1];
  return text === undefined ? undefined : (parseJson(text) as StoredMessage[]);
}

function withoutComma(line: string): string {
  return line.endsWith(',') ? line.slice(0, -1) : line;
}

/** A piece of a text keeps the whole text alive. */
function flat(piece: string): string {
  return Buffer.from(piece).toString();
}

function sizeOf({ systemLine, lines }: Read): number {
  return lines.reduce((total, line) => total + 3 * line.length + LINE_BYTES, 3 * systemLine.length + LINE_BYTES);
}

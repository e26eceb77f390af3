import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto';
import type { Config } from '../contracts/config.ts';
import { isRecord } from '../wire/json.ts';

/** Of each message and of the answer, in characters: a trace is for looking at. */
const MAX_TEXT = 16_384;
/** Kept beyond it until what must not be seen is taken out: what is cut in two is not found. */
const MARGIN = 1024;
const MAX_MESSAGES = 50;

/** What was said, as far as `trace.capture_content` lets a trace know it. Its public members are what it weighs. */
export interface CapturedContent {
  readonly request: readonly unknown[];
  readonly answer: string;
  /** More of the answer. */
  hear(text: string): void;
  /** What a trace shows, made when somebody looks or stores it; the answer is over then. */
  view(): Record<string, unknown>;
}

export function createCapturedContent(config: Config, messages: readonly unknown[], redact: (content: unknown) => unknown): CapturedContent {
  const newest = messages.slice(-MAX_MESSAGES);
  if (config.trace.capture_content !== 'hashes') return new KeptContent(newest, redact);
  const { hash_key_env: name } = config.trace;
  return new HashedContent(newest, name === undefined ? undefined : config.secrets.get(name));
}

class KeptContent implements CapturedContent {
  request: readonly unknown[];
  answer = '';
  readonly #redact: (content: unknown) => unknown;
  #view: Record<string, unknown> | undefined;

  constructor(messages: readonly unknown[], redact: (content: unknown) => unknown) {
    this.request = messages.map((message) => shortened(message, MAX_TEXT + MARGIN, (text, most) => text.slice(0, most)));
    this.#redact = redact;
  }
  hear(text: string): void {
    if (this.answer.length < MAX_TEXT + MARGIN) this.answer = (this.answer + text).slice(0, MAX_TEXT + MARGIN);
  }
  view(): Record<string, unknown> {
    if (this.#view === undefined) {
      this.#view = shortened(this.#redact({ request: this.request, answer: this.answer }), MAX_TEXT, cut) as Record<string, unknown>;
      this.request = [];
      this.answer = '';
    }
    return this.#view;
  }
}

/** Enough to tell whether two requests said the same, and to prove what was said to whoever has it: no text is kept. */
class HashedContent implements CapturedContent {
  readonly request: readonly unknown[];
  readonly answer = '';
  readonly #hash: Hash | Hmac;
  #characters = 0;
  #view: Record<string, unknown> | undefined;

  constructor(messages: readonly unknown[], key: string | undefined) {
    this.request = messages.map((message) => hashedMessage(message, key));
    this.#hash = startHash(key);
  }
  hear(text: string): void {
    this.#hash.update(text);
    this.#characters += text.length;
  }
  view(): Record<string, unknown> {
    this.#view ??= { hashed: true, request: this.request, answer: { characters: this.#characters, hash: this.#hash.digest('hex') } };
    return this.#view;
  }
}

/** SHA-256 of the content as UTF-8 (what is not a text, as JSON), with the tool calls behind it; under a key its HMAC. */
function hashedMessage(message: unknown, key: string | undefined): Record<string, unknown> {
  const { role, content, tool_calls } = isRecord(message) ? message : { role: undefined, content: message, tool_calls: undefined };
  const text = typeof content === 'string' ? content : JSON.stringify(content ?? null);
  const hash = startHash(key).update(text);
  if (tool_calls !== undefined) hash.update(JSON.stringify(tool_calls));
  return { role, characters: text.length, hash: hash.digest('hex') };
}

function startHash(key: string | undefined): Hash | Hmac {
  return key === undefined ? createHash('sha256') : createHmac('sha256', key);
}

type Shorten = (text: string, most: number) => string;

function cut(text: string, most: number): string {
  return `${text.slice(0, most)}…`;
}

function shortened(value: unknown, most: number, shorten: Shorten): unknown {
  if (typeof value === 'string') return value.length > most ? shorten(value, most) : value;
  if (Array.isArray(value)) return value.map((part) => shortened(part, most, shorten));
  if (isRecord(value)) return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, shortened(part, most, shorten)]));
  return value;
}

import type { Answer, Facts } from '../contracts/exchange.ts';
import type { ChatCompletion, Usage } from '../wire/chat.ts';
import { isRecord, parseJsonBytes, stringifyJson } from '../wire/json.ts';
import { isUsage } from '../wire/usage.ts';

/** What is told of a kept answer beside its body. */
interface Head {
  /** Unix milliseconds. */
  at: number;
  model?: string | undefined;
  upstream?: string | undefined;
  usage?: Usage | undefined;
  finishReason?: string | undefined;
  upstreamFinishReason?: string | undefined;
  toolCalls?: Facts['toolCalls'];
  maker?: string | undefined;
  /** Guards that flagged it. */
  guard?: string | undefined;
}
const GUARD_HEADER = 'x-hermes-guard';
/** What a second caller may get: said to its end, or to the length that was asked for. */
const WHOLE = new Set(['stop', 'length', 'tool_calls']);

/** An answer that can be given again: its body's bytes in OpenAI's form, and what is known of it. Never parsed to be given. */
export class KeptAnswer {
  readonly head: Head;
  readonly body: Buffer;

  constructor(head: Head, body: Buffer) {
    this.head = head;
    this.body = body;
  }

  get size(): number {
    return this.body.length + 1000;
  }
  get headers(): Record<string, string> {
    return this.head.guard === undefined ? {} : { [GUARD_HEADER]: this.head.guard };
  }
  /** Of a new answer: no upstream was asked. */
  get facts(): Facts {
    const { at: _at, guard: _guard, ...facts } = this.head;
    return { ...facts, attempts: 0 };
  }

  toText(): string {
    return `${JSON.stringify(this.head)}\n${this.body.toString('utf8')}`;
  }

  /** Undefined for what is none. */
  static fromText(text: string): KeptAnswer | undefined {
    const end = text.indexOf('\n');
    try {
      const head = toHead(JSON.parse(text.slice(0, Math.max(end, 0))));
      return head && new KeptAnswer(head, Buffer.from(text.slice(end + 1)));
    } catch {
      return undefined;
    }
  }
}

/** Undefined for what is none: another version may have written it. */
function toHead(value: unknown): Head | undefined {
  if (!isRecord(value) || typeof value.at !== 'number') return undefined;
  const { at, usage, toolCalls } = value;
  const [model, upstream, finishReason, upstreamFinishReason, maker, guard] = [
    value.model,
    value.upstream,
    value.finishReason,
    value.upstreamFinishReason,
    value.maker,
    value.guard,
  ].map((text) => (typeof text === 'string' ? text : undefined));
  if (usage !== undefined && !isUsage(usage)) return undefined;
  if (toolCalls !== undefined && !(Array.isArray(toolCalls) && toolCalls.every(isToolCall))) return undefined;
  return { at, model, upstream, usage, finishReason, upstreamFinishReason, toolCalls, maker, guard };
}
function isToolCall(value: unknown): value is NonNullable<Facts['toolCalls']>[number] {
  return isRecord(value) && typeof value.tool === 'string';
}

/** The answer for keeping; undefined: it must not be given to anybody else. `opted`: the caller takes answers that tools had a part in. */
export function toKeptAnswer(answer: Answer, body: Buffer, completion: ChatCompletion, opted: boolean, now: number): KeptAnswer | undefined {
  const { facts } = answer;
  if (answer.error || answer.status !== 200 || facts.degraded || facts.replayed) return undefined;
  if (!opted && facts.toolCalls?.length) return undefined;
  const whole = completion.choices.every(
    ({ finish_reason, message }) => WHOLE.has(finish_reason ?? '') && Boolean(message.content || message.tool_calls?.length),
  );
  if (completion.choices.length === 0 || !whole) return undefined;
  const { model, upstream, upstreamFinishReason, toolCalls, maker } = facts;
  const usage = facts.usage ?? completion.usage ?? undefined;
  const finishReason = facts.finishReason ?? completion.choices[0]?.finish_reason ?? undefined;
  return new KeptAnswer({ at: now, model, upstream, usage, finishReason, upstreamFinishReason, toolCalls, maker, guard: answer.headers[GUARD_HEADER] }, body);
}

/** A whole body's bytes in OpenAI's form: as they came where they came so. */
export function bytesOf(answer: Answer): Buffer {
  const { raw } = answer;
  if (raw?.form === 'openai-chat') return Buffer.from(raw.bytes);
  return Buffer.from(stringifyJson(answer.view ?? null));
}

export function completionIn(body: Uint8Array): ChatCompletion | undefined {
  const value = parseJsonBytes(body);
  return isRecord(value) && Array.isArray(value.choices) ? (value as ChatCompletion) : undefined;
}

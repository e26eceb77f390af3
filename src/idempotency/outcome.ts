import type { Answer, AnswerInit, Facts } from '../contracts/exchange.ts';
import type { Batch } from '../contracts/stream.ts';
import { toBatch, toChatEvent } from '../wire/batch.ts';
import { isRecord, parseJsonBytes, stringifyJson } from '../wire/json.ts';
import { replay } from '../wire/streams.ts';

/** How a request ended, ready to be given again: bytes and facts, nothing that keeps an exchange alive. */
export class Outcome {
  readonly fingerprint: string;
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly kind: 'body' | 'stream';
  /** A completion as JSON, or the events of a stream without its terminal marker; in OpenAI's form. */
  readonly bytes: Buffer;
  readonly facts: Facts;
  /** Unix milliseconds. */
  readonly expiresAt: number;

  constructor(init: Pick<Outcome, 'fingerprint' | 'status' | 'headers' | 'kind' | 'bytes' | 'facts' | 'expiresAt'>) {
    this.fingerprint = init.fingerprint;
    this.status = init.status;
    this.headers = init.headers;
    this.kind = init.kind;
    this.bytes = init.bytes;
    this.facts = init.facts;
    this.expiresAt = init.expiresAt;
  }

  get size(): number {
    return this.bytes.length + 1024;
  }

  /** The same answer again; nothing was waited for this time. */
  again(): AnswerInit {
    const facts: Facts = { ...this.facts, replayed: true, waitedMs: 0 };
    const head = { status: this.status, headers: { ...this.headers }, facts };
    if (this.kind === 'body') return { ...head, body: parseJsonBytes(this.bytes) };
    return { ...head, stream: replay(this.bytes.length > 0 ? [toBatch(this.bytes, true)] : []) };
  }

  toText(): string {
    const { bytes, ...rest } = this;
    return JSON.stringify({ ...rest, text: bytes.toString('utf8') });
  }

  /** Undefined: not written by this version. */
  static fromText(text: string): Outcome | undefined {
    const value: unknown = JSON.parse(text);
    if (!isRecord(value) || typeof value.text !== 'string' || typeof value.fingerprint !== 'string' || typeof value.expiresAt !== 'number') return undefined;
    return new Outcome({
      fingerprint: value.fingerprint,
      status: typeof value.status === 'number' ? value.status : 200,
      headers: isRecord(value.headers) ? (value.headers as Record<string, string>) : {},
      kind: value.kind === 'stream' ? 'stream' : 'body',
      bytes: Buffer.from(value.text),
      facts: isRecord(value.facts) ? (value.facts as Facts) : {},
      expiresAt: value.expiresAt,
    });
  }
}

/** A whole body in OpenAI's form; a copy, for upstream buffers are slices of larger ones. */
export function toBodyBytes(answer: Answer): Buffer {
  const { raw } = answer;
  return raw?.form === 'openai-chat' ? Buffer.from(raw.bytes) : Buffer.from(stringifyJson(answer.view) ?? 'null');
}

/** What a stream brought, in OpenAI's form; a copy. */
export function toStreamBytes(batches: readonly Batch[]): Buffer {
  return Buffer.concat(batches.flatMap((batch) => (batch.bytes && batch.form === 'openai-chat' ? [batch.bytes] : batch.chunks.map(toChatEvent))));
}

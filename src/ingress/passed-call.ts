import type { IncomingMessage } from 'node:http';
import { DEFAULT_PASSTHROUGH } from '../access/passthrough-paths.ts';
import type { Exchange, Facts, ModelCall, TokenCounts, UpstreamTarget } from '../contracts/exchange.ts';
import { isRecord } from '../wire/json.ts';
import { isUsage, tokensOf } from '../wire/usage.ts';
import { callerRequestId } from './caller-headers.ts';
import type { Gateway } from './gateway.ts';
import { normalisePath } from './router.ts';

/** Usage stands near the end of an answer, whole or streamed: no more of it is kept. */
const TAIL_BYTES = 16_384;
const NO_TOKENS: TokenCounts = { input: 0, cached: 0, cacheWrite: 0, output: 0, reasoning: 0 };

/**
 * A call that is passed through, for the books: the bytes go by as they are, and the last of them are looked at for what the upstream
 * counted. What cannot be read (compressed answers, websockets, uploads) is booked without tokens.
 */
export class PassedCall {
  readonly #gateway: Gateway;
  readonly #exchange: Exchange;
  readonly #target: UpstreamTarget;
  readonly #startedAt: number;
  readonly #start = performance.now();
  #status: number | undefined;
  #tail = '';
  #model: string | undefined;

  constructor(gateway: Gateway, exchange: Exchange, target: UpstreamTarget) {
    this.#gateway = gateway;
    this.#exchange = exchange;
    this.#target = target;
    this.#startedAt = gateway.environment.now();
  }

  watch(incoming: IncomingMessage): void {
    this.#status = incoming.statusCode;
    const { 'content-type': type = '', 'content-encoding': encoding } = incoming.headers;
    if (encoding !== undefined || !/\b(json|event-stream)\b/.test(type)) return;
    // Latin-1 keeps every byte as one character: a cut through a letter does no harm, and what is looked for is ASCII.
    incoming.on('data', (part: Buffer) => {
      this.#tail = (part.length >= TAIL_BYTES ? '' : this.#tail).concat(part.toString('latin1')).slice(-TAIL_BYTES);
    });
  }

  /** A websocket that the upstream took. */
  opened(): void {
    this.#status = 101;
  }

  /** Books it, once it is over. */
  end(error: string | undefined): void {
    const usage = lastUsage(this.#tail);
    const isWebsocket = this.#status === 101;
    // A websocket's method is GET; one that the upstream did not take was no call.
    if (!isWebsocket && (this.#exchange.inbound.method !== 'POST' || (usage === undefined && !isModelPath(this.#exchange.inbound.path)))) return;
    this.#model = this.#findModel();
    const call = this.#toCall(usage, error);
    this.#gateway.rooms.accounting.record(call, this.#exchange.config);
    this.#exchange.addCall(call);
  }

  /** What is told of it once it is over; the model where the registry knows the one that answered. */
  facts(): Facts {
    return { route: 'passthrough', upstream: this.#target.id, attempts: 1, ...(this.#model && { model: this.#model }) };
  }

  #findModel(): string | undefined {
    const { registry } = this.#exchange.config;
    const named = lastModel(this.#tail);
    return named === undefined ? undefined : (registry.find(named) ?? registry.find(named.replace(/-\d{4}-\d\d-\d\d$/, '')))?.id;
  }

  #toCall(usage: TokenCounts | undefined, error: string | undefined): ModelCall {
    const { principal, caller, trace, id } = this.#exchange;
    const answered = this.#status !== undefined && this.#status < 400;
    const ok = answered && error === undefined;
    return {
      id: this.#gateway.environment.uuid(),
      traceId: trace.id,
      requestId: id,
      startedAt: this.#startedAt,
      durationMs: performance.now() - this.#start,
      firstTokenMs: undefined,
      // A model that the registry does not know has no price, and no name in labels.
      model: this.#model ?? 'passthrough',
      upstream: this.#target.id,
      upstreamIdentity: this.#target.identity,
      provider: this.#target.provider,
      route: 'passthrough',
      service: caller?.service ?? '',
      project: caller?.project ?? '',
      user: caller?.user,
      session: undefined,
      key: principal?.id ?? '',
      outcome: ok ? 'ok' : error === 'client_closed' ? 'aborted' : this.#status === 429 ? 'rate_limited' : 'error',
      status: this.#status,
      error,
      tokens: usage ?? NO_TOKENS,
      estimated: false,
      answered,
      costNanoUsd: undefined,
      shadow: false,
    };
  }
}

/** What is asked of a model there is counted in the answer, if the answer can be read. */
export function isModelPath(path: string): boolean {
  const plain = normalisePath(path) ?? '';
  return DEFAULT_PASSTHROUGH.some((known) => plain === known || plain.startsWith(`${known}/`));
}

/** The last `"usage": {…}` that is whole. */
function lastUsage(text: string): TokenCounts | undefined {
  for (let at = text.lastIndexOf('"usage"'); at >= 0; at = at === 0 ? -1 : text.lastIndexOf('"usage"', at - 1)) {
    const object = objectAt(text, at + '"usage"'.length);
    const tokens = object && toTokens(object);
    if (tokens !== undefined) return tokens;
  }
  return undefined;
}

function lastModel(text: string): string | undefined {
  return [...text.matchAll(/"model"\s*:\s*"([^"\\]{1,200})"/g)].at(-1)?.[1];
}

/** The object behind a colon; usage holds no braces in strings. */
function objectAt(text: string, from: number): Record<string, unknown> | undefined {
  const begin = /^\s*:\s*\{/.exec(text.slice(from, from + 20))?.[0].length;
  if (begin === undefined) return undefined;
  let depth = 1;
  let end = from + begin;
  for (; end < text.length && depth > 0; end++) depth += text[end] === '{' ? 1 : text[end] === '}' ? -1 : 0;
  try {
    const value: unknown = JSON.parse(text.slice(from + begin - 1, end));
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** In the words of chat and embeddings, of Responses, or of Anthropic (whose input excludes what was cached). */
function toTokens(usage: Record<string, unknown>): TokenCounts | undefined {
  const number = (value: unknown): number => (typeof value === 'number' && value > 0 ? value : 0);
  const detail = (name: string, field: string): number => (isRecord(usage[name]) ? number(usage[name][field]) : 0);
  if (isUsage(usage)) return tokensOf(usage);
  if (!('input_tokens' in usage)) return undefined;
  const [read, write] = [number(usage.cache_read_input_tokens), number(usage.cache_creation_input_tokens)];
  return {
    input: number(usage.input_tokens) + read + write,
    cached: read + detail('input_tokens_details', 'cached_tokens'),
    cacheWrite: write,
    output: number(usage.output_tokens),
    reasoning: detail('output_tokens_details', 'reasoning_tokens'),
  };
}

/** The log line, metrics and trace of what was passed through. */
export function endPassed(gateway: Gateway, exchange: Exchange, request: IncomingMessage, status: number, error: string | undefined, durationMs: number): void {
  gateway.ended({
    exchange,
    traceId: exchange.trace.id,
    requestId: exchange.id,
    callerRequestId: callerRequestId(exchange.headers),
    method: request.method ?? 'GET',
    path: (exchange.inbound.path.split('?')[0] ?? '/').slice(0, 200),
    status,
    error,
    durationMs,
    overheadMs: undefined,
    firstTokenMs: undefined,
  });
}

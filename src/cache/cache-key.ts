import type { Config } from '../contracts/config.ts';
import type { Exchange } from '../contracts/exchange.ts';
import { canonicalJson, sha256 } from '../wire/canonical.ts';
import { type ChatMessage, type ChatRequest, messageText } from '../wire/chat.ts';
import { exactIn } from './exact.ts';

/** Kept answers of another shape are never found. */
const VERSION = 1;

/**
 * The name that an answer is kept under: who asks, what it may use, who serves it and the whole canonical body. It begins with
 * the principal's identity, and that is in the hash, too: no two principals share an answer, however a body is worded.
 */
export function toCacheKey(exchange: Exchange, tools: readonly string[]): string {
  return named(exchange, [scopeOf(exchange, tools), bodyOf(exchange.request)]);
}

export interface Question {
  /** Everything but the text: equal for requests that differ only in how the last question is worded. */
  scope: string;
  text: string;
  /** What must be the same in both, however near they are. */
  exact: string;
}
/**
 * A last message of nothing but text, whose wording may vary; undefined: only an equal request will do. `found`: what guards find,
 * whose values the embedder is not shown, so that its vectors do not differ by them.
 */
export function toQuestion(exchange: Exchange, tools: readonly string[], found: (config: Config, text: string) => string[]): Question | undefined {
  const { request } = exchange;
  const last = request.messages.at(-1);
  if (last?.role !== 'user' || tools.length > 0 || request.tools?.length || !isText(last)) return undefined;
  const text = messageText(last).trim();
  if (text === '') return undefined;
  const body = bodyOf({ ...request, messages: request.messages.slice(0, -1) });
  const { content: _content, ...rest } = last;
  const exact = canonicalJson([exactIn(text), found(exchange.config, text)]);
  return { scope: named(exchange, [scopeOf(exchange, tools), body, rest]), text, exact };
}

function isText({ content }: ChatMessage): boolean {
  return typeof content === 'string' || (Array.isArray(content) && content.every(({ type }) => type === 'text'));
}

function named(exchange: Exchange, parts: unknown): string {
  const owner = (exchange.principal?.id ?? '').replace(/[^A-Za-z0-9.-]/g, '-').slice(0, 64);
  return `${owner}.cache.${Buffer.from(sha256(canonicalJson([VERSION, parts])), 'base64url').toString('hex')}`;
}

function bodyOf({ stream: _stream, stream_options: _options, model: _model, ...body }: ChatRequest): unknown {
  return body;
}

function scopeOf(exchange: Exchange, tools: readonly string[]): unknown {
  const { principal, caller, config, route } = exchange;
  const model = route?.model ?? '';
  return [
    principal?.id,
    principal?.project,
    principal?.models,
    caller?.project,
    caller?.service,
    caller?.user,
    caller?.userLevel,
    route?.rule,
    model,
    servedBy(config, model),
    tools,
    settingsOf(config),
  ];
}

/** Another upstream behind the same name gives other answers. */
function servedBy(config: Config, model: string): unknown {
  const entry = config.registry.models.get(model) ?? config.registry.find(model);
  return entry?.upstreams.map(({ identity, modelName, maxTokens, extraBody }) => [identity, modelName, maxTokens, extraBody]);
}

const settings = new WeakMap<Config, string>();
/** What else of the configuration has a say in an answer; hashed once a generation. */
function settingsOf(config: Config): string {
  let known = settings.get(config);
  if (known === undefined) {
    known = sha256(canonicalJson([config.guards, config.tools, config.tool_sources, config.tools_max_rounds, config.tool_loop_guard]));
    settings.set(config, known);
  }
  return known;
}

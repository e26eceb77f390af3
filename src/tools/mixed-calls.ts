import type { ColdStore } from '../contracts/cold-store.ts';
import type { Exchange } from '../contracts/exchange.ts';
import type { HotStore } from '../contracts/hot-store.ts';
import type { Environment, Log } from '../contracts/telemetry.ts';
import { sha256 } from '../wire/canonical.ts';
import { type ChatMessage, messageText, type ToolCall } from '../wire/chat.ts';
import { isRecord, parseJson, stringifyJson } from '../wire/json.ts';
import { withMaker, withStoredMaker } from '../wire/maker.ts';

interface Kept {
  /** The model's message with all of its calls. */
  message: ChatMessage;
  results: ChatMessage[];
}

/**
 * One answer called tools of both sides: the client saw its own calls only. The server's, with their results, wait here until
 * the client comes back with its results, in a session or without one.
 */
export class MixedCalls {
  readonly #hot: HotStore;
  readonly #cold: ColdStore;
  readonly #environment: Environment;
  readonly #log: Log;

  constructor({ hot, cold, environment, log }: { hot: HotStore; cold: ColdStore; environment: Environment; log: Log }) {
    this.#hot = hot;
    this.#cold = cold;
    this.#environment = environment;
    this.#log = log;
  }

  async keep(exchange: Exchange, question: string, visible: readonly ToolCall[], kept: Kept): Promise<void> {
    const keys = sessionsKept(exchange).map((session) => toKey(exchange, session, question, visible));
    const text = stringifyJson({ ...kept, message: withStoredMaker(kept.message) });
    const ttlMs = exchange.config.idempotency.ttl_seconds * 1000;
    await Promise.all(
      keys.flatMap((key) => [
        this.#hot.set(key, text, ttlMs).catch((err) => this.#log.debug({ err }, 'results of a mixed answer are in the cold store alone')),
        this.#cold.setValue(key, text, this.#environment.now() + ttlMs).catch((err) => this.#log.warn({ err }, 'results of a mixed answer could not be kept')),
      ]),
    );
  }

  /** The conversation with what the client never saw put back; the same array when there is nothing. */
  async rejoin(exchange: Exchange, messages: ChatMessage[]): Promise<ChatMessage[]> {
    const at = messages.findLastIndex((message) => message.role === 'assistant');
    const shown = messages[at];
    if (!shown?.tool_calls?.length || messages[at + 1]?.role !== 'tool') return messages;
    const question = toQuestion(messages.slice(0, at));
    let kept: Kept | undefined;
    for (const session of sessionsSearched(exchange)) kept ??= await this.#find(toKey(exchange, session, question, shown.tool_calls));
    if (kept === undefined) return messages;
    let end = at + 1;
    while (messages[end]?.role === 'tool') end++;
    const given = [...messages.slice(at + 1, end), ...kept.results];
    const calls = kept.message.tool_calls ?? [];
    // Results stand in the order of their calls; one that answers no call keeps its place at the end.
    const ordered = [
      ...calls.flatMap((call) => given.filter((result) => result.tool_call_id === call.id)),
      ...given.filter((result) => !calls.some((call) => call.id === result.tool_call_id)),
    ];
    return [...messages.slice(0, at), { ...kept.message, ...shown, tool_calls: calls }, ...ordered, ...messages.slice(end)];
  }

  async #find(key: string): Promise<Kept | undefined> {
    const away = (err: unknown): undefined => void this.#log.debug({ err }, 'results of a mixed answer could not be looked up');
    const text = (await this.#hot.get(key).catch(away)) ?? (await this.#cold.getValue(key).catch(away));
    if (text === undefined) return undefined;
    const value = parseJson(text);
    if (!isRecord(value) || !isRecord(value.message) || !Array.isArray(value.results)) return undefined;
    return { message: withMaker(value.message as ChatMessage), results: value.results as ChatMessage[] };
  }
}

/** `null`: of no session. A client whose session hermes has named may go on with it, or send the whole conversation again, which then is of none that it knows. */
function sessionsKept({ ask, session }: Exchange): (string | null)[] {
  if (session === undefined) return [null];
  return ask.sessionIsNew ? [session.id, null] : [session.id];
}

/** Of a session that branches off another one, the answer is in that one. */
function sessionsSearched({ ask, session }: Exchange): Set<string | null> {
  if (session === undefined || ask.sessionIsNew) return new Set([null]);
  return new Set([session.id, ask.sessionId ?? session.id]);
}

/** Call ids alone are not enough: some servers number them anew in every answer. */
function toKey(exchange: Exchange, session: string | null, question: string, calls: readonly ToolCall[]): string {
  const shown = calls.map((call) => [call.id, call.function.name]);
  return `mixed:${sha256(JSON.stringify([exchange.principal?.id ?? '', session, question, shown]))}`;
}

/** The newest user text: what the answer was for. */
export function toQuestion(messages: readonly ChatMessage[]): string {
  const asked = messages.findLast((message) => message.role === 'user');
  return asked === undefined ? '' : messageText(asked);
}

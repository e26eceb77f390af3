import { HermesError } from '../contracts/errors.ts';
import type { Exchange, UpstreamTarget } from '../contracts/exchange.ts';
import type { FitResult } from '../contracts/rooms.ts';
import type { ChatMessage, ChatRequest } from '../wire/chat.ts';
import { type Budget, toBudget } from './budget.ts';
import type { Counter } from './counter.ts';
import { type Scale, scaled, scaleOf } from './encoding.ts';
import type { MessageCounts } from './message-counts.ts';
import { ANSWER_FRAME } from './message-size.ts';
import type { Recaps } from './recaps.ts';
import { DEFAULT_RULE, type ToolResults, toolsOfResults } from './tool-results.ts';
import { toUnits, type Unit } from './units.ts';

export interface FitParts {
  counter: Counter;
  counts: MessageCounts;
  results: ToolResults;
  recaps: Recaps;
}

/** Tokens, and the messages that are not in them. */
interface Counted {
  counted: number;
  open: readonly ChatMessage[];
}

/** Fits one request to one target. */
export class Fitting {
  readonly #parts: FitParts;
  readonly #exchange: Exchange;
  readonly #request: ChatRequest;
  readonly #scale: Scale;
  readonly #budget: Budget;
  #messages: ChatMessage[];

  constructor(parts: FitParts, exchange: Exchange, request: ChatRequest, target: UpstreamTarget) {
    this.#parts = parts;
    this.#exchange = exchange;
    this.#request = request;
    this.#scale = scaleOf(target.modelName);
    this.#budget = toBudget(exchange.config, request, target);
    this.#messages = request.messages;
  }

  run(): FitResult | Promise<FitResult> {
    const { config, session } = this.#exchange;
    const managed = session !== undefined || config.trim.stateless;
    const wordy = this.#wordyResults(managed);
    if (wordy.length === 0) return managed ? this.#trim() : this.#done(0);
    return this.#reduce(wordy).then(() => (managed ? this.#trim() : this.#done(0)));
  }

  /** Results of tools that have a `summary`; in a request that is not ours to touch only those that hermes itself put in. */
  #wordyResults(managed: boolean): number[] {
    const rules = this.#parts.results.rules(this.#exchange.config);
    if (rules.none) return [];
    const callers = managed ? undefined : new Set(this.#exchange.inbound.request.messages);
    return [...toolsOfResults(this.#messages)].flatMap(([index, tool]) => {
      const message = this.#messages[index];
      return tool !== undefined && rules.of(tool) && message && !callers?.has(message) ? [index] : [];
    });
  }

  async #reduce(indexes: readonly number[]): Promise<void> {
    const { results } = this.#parts;
    const rules = results.rules(this.#exchange.config);
    const tools = toolsOfResults(this.#messages);
    const messages = [...this.#messages];
    let changed = false;
    for (const index of indexes) {
      const message = messages[index];
      if (message === undefined) continue;
      const reduced = await results.reduce(message, rules.of(tools.get(index) ?? '') ?? DEFAULT_RULE, this.#countText);
      changed ||= reduced !== message;
      messages[index] = reduced;
    }
    if (changed) this.#messages = messages;
  }

  readonly #countText = async (text: string): Promise<number> => scaled(await this.#parts.counter.count(this.#scale.encoding, [text]), this.#scale);

  #trim(): FitResult | Promise<FitResult> {
    const { wanted, possible } = this.#budget;
    const overhead = this.#overheadText();
    const { counts } = this.#parts;
    const fixed = ANSWER_FRAME + Buffer.byteLength(overhead);
    const open: ChatMessage[] = [];
    let counted = 0;
    for (const message of this.#messages) {
      const known = counts.known(message, this.#scale);
      if (known === undefined) open.push(message);
      else counted += known;
    }
    const most = open.reduce((total, message) => total + counts.atMost(message, this.#scale), fixed + counted);
    if (most > Math.min(wanted, possible)) return this.#trimExactly(overhead);
    return this.#done(0, { counted: ANSWER_FRAME + counted, open });
  }

  async #trimExactly(overheadText: string): Promise<FitResult> {
    const { wanted } = this.#budget;
    const overhead = ANSWER_FRAME + (overheadText === '' ? 0 : await this.#countText(overheadText));
    let tokens = await this.#countAll();
    if (overhead + sum(tokens) > wanted) {
      const largest = [...toolsOfResults(this.#messages).keys()].filter((index) => (tokens[index] ?? 0) > DEFAULT_RULE.max_tokens);
      // Oldest first, and no more than it takes.
      for (const index of largest) {
        await this.#reduce([index]);
        tokens = await this.#countAll();
        if (overhead + sum(tokens) <= wanted) break;
      }
    }
    if (overhead + sum(tokens) <= wanted) return this.#done(0, { counted: overhead + sum(tokens), open: [] });
    return this.#drop(tokens, overhead);
  }

  async #countAll(): Promise<number[]> {
    return Promise.all(this.#messages.map((message) => this.#parts.counts.exactly(message, this.#scale)));
  }

  async #drop(tokens: readonly number[], overhead: number): Promise<FitResult> {
    const { wanted, possible } = this.#budget;
    const cost = (unit: Unit): number => unit.indexes.reduce((total, index) => total + (tokens[index] ?? 0), 0);
    const units = toUnits(this.#messages);
    let used = overhead + sum(units.filter((unit) => unit.pinned).map(cost));
    if (used > possible) throw this.#tooLong(used);
    const recap = await this.#recap(wanted - used);
    used += recap?.tokens ?? 0;
    const kept = new Set(units.filter((unit) => unit.pinned));
    for (const unit of units.toReversed()) {
      if (unit.pinned) continue;
      const next = used + cost(unit);
      // The history stays without gaps: the first that does not fit ends it.
      if (next > wanted) break;
      used = next;
      kept.add(unit);
    }
    const indexes = new Set([...kept].flatMap((unit) => unit.indexes));
    const left = this.#messages.filter((_message, index) => !indexes.has(index));
    if (left.length === 0) return this.#done(0, { counted: used, open: [] });
    const stays = this.#messages.filter((_message, index) => indexes.has(index));
    const begins = stays.findIndex(({ role }) => role !== 'system' && role !== 'developer');
    this.#messages = recap ? stays.toSpliced(Math.max(0, begins), 0, recap.message) : stays;
    return { ...this.#done(left.length, { counted: used, open: [] }), left };
  }

  /** The summary of what went in earlier turns, where there is one and room for it. */
  async #recap(room: number): Promise<{ message: ChatMessage; tokens: number } | undefined> {
    const { session, config } = this.#exchange;
    if (!session || !config.session.summarize_dropped) return undefined;
    const message = await this.#parts.recaps.find(session);
    const tokens = message ? await this.#parts.counts.exactly(message, this.#scale) : 0;
    return message && tokens <= room ? { message, tokens } : undefined;
  }

  /** What the model reads beside the messages. */
  #overheadText(): string {
    const { tools, response_format } = this.#request;
    const text = tools?.length ? JSON.stringify(tools) : '';
    return typeof response_format === 'object' && response_format !== null ? text + JSON.stringify(response_format) : text;
  }

  #tooLong(needed: number): HermesError {
    const { window, answer, reserve, possible } = this.#budget;
    return new HermesError(
      'context_length_exceeded',
      `The system prompt, the newest message and the tools need ${needed} tokens, but at most ${Math.max(0, possible)} fit: this model's context window is ${window} tokens, ${answer} are for the answer and ${reserve} stay in reserve. Shorten the message, or choose a model with a larger window.`,
      { param: 'messages', exceeded: { tokens: needed, maximum: Math.max(0, possible) } },
    );
  }

  #done(dropped: number, { counted, open }: Counted = { counted: ANSWER_FRAME, open: this.#messages }): FitResult {
    const request = this.#messages === this.#request.messages ? this.#request : { ...this.#request, messages: this.#messages };
    const counts = this.#parts.counts;
    const scale = this.#scale;
    return {
      request,
      budget: this.#budget.total,
      kept: request.messages.length,
      dropped,
      tokens: () => open.reduce((total, message) => total + counts.roughly(message, scale), counted),
    };
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

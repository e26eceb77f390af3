import { LRUCache } from 'lru-cache';
import type { Config } from '../contracts/config.ts';
import { type ChatMessage, messageText } from '../wire/chat.ts';
import { type CountText, type SummaryRule, summarise } from './summarise.ts';

/** For results of tools without a `summary`, and of client-side tools; only when the context does not fit. */
export const DEFAULT_RULE: SummaryRule = { keep_last: 3, max_tokens: 400 };

/** Bytes of original results whose summaries are remembered: a long result is in every later request of its session. */
const REMEMBERED_CHARS = 16 * 1024 * 1024;

/** By tool; those of a server's tools are their source's. */
export class SummaryRules {
  readonly #tools: ReadonlyMap<string, SummaryRule>;
  readonly #sources: readonly (readonly [string, SummaryRule])[];

  constructor({ tools, tool_sources }: Config) {
    this.#tools = new Map(tools.flatMap(({ id, summary }) => (summary ? [[id, summary] as const] : [])));
    this.#sources = tool_sources.flatMap(({ id, summary }) => (summary ? [[`${id}.`, summary] as const] : []));
  }

  get none(): boolean {
    return this.#tools.size === 0 && this.#sources.length === 0;
  }

  of(tool: string): SummaryRule | undefined {
    return this.#tools.get(tool) ?? this.#sources.find(([prefix]) => tool.startsWith(prefix))?.[1];
  }
}

/** Reduces the results of tools on the outgoing copy. */
export class ToolResults {
  readonly #summaries = new LRUCache<string, Map<string, string>>({
    maxSize: REMEMBERED_CHARS,
    sizeCalculation: (_summaries, text) => Math.max(1, text.length),
  });
  readonly #rules = new WeakMap<Config, SummaryRules>();

  /** The `summary` rules of a configuration. */
  rules(config: Config): SummaryRules {
    let rules = this.#rules.get(config);
    if (rules === undefined) {
      rules = new SummaryRules(config);
      this.#rules.set(config, rules);
    }
    return rules;
  }

  /** The same message when its text is within the rule. */
  async reduce(message: ChatMessage, rule: SummaryRule, count: CountText): Promise<ChatMessage> {
    const text = messageText(message);
    // No token is shorter than a byte, no UTF-16 unit longer than three.
    if (text.length * 3 <= rule.max_tokens) return message;
    const key = `${rule.keep_last}:${rule.max_tokens}:${rule.fields?.join() ?? ''}`;
    let known = this.#summaries.get(text);
    let summary = known?.get(key);
    if (summary === undefined) {
      summary = await summarise(text, rule, count);
      known ??= new Map();
      known.set(key, summary);
      this.#summaries.set(text, known);
    }
    return summary === text ? message : { ...message, content: summary };
  }
}

/** The tool that each result is of, by the index of its message. */
export function toolsOfResults(messages: readonly ChatMessage[]): Map<number, string | undefined> {
  const names = new Map<string, string>();
  const found = new Map<number, string | undefined>();
  for (const [index, message] of messages.entries()) {
    for (const call of message.tool_calls ?? []) names.set(call.id, call.function?.name);
    if (message.role === 'tool') found.set(index, names.get(message.tool_call_id ?? ''));
  }
  return found;
}

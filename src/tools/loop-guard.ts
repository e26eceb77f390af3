import { canonicalJson } from '../wire/canonical.ts';
import { parseJson } from '../wire/json.ts';
import type { ToolResult } from './result.ts';

/** A call of a round and what it came to. */
export interface SeenCall {
  name: string;
  /** As the model wrote them. */
  arguments: string;
  result: ToolResult;
}

/**
 * Notices a turn that goes round in a circle: the same call made `repeats` times, or as many rounds in a row that brought
 * nothing which was not there before. Every further round would cost money and end as the last one did.
 */
export class LoopGuard {
  readonly #repeats: number;
  readonly #calls = new Map<string, number>();
  readonly #results = new Set<string>();
  #idleRounds = 0;
  #looping: { tool: string; why: string } | undefined;

  constructor(repeats: number) {
    this.#repeats = repeats;
  }

  /** The tool that it went round with; undefined: it makes progress. */
  get tool(): string | undefined {
    return this.#looping?.tool;
  }
  /** What the model is told. */
  get advice(): string {
    return `${this.#why} Do not call tools any more. Answer with what you know by now, and say what could not be found out or done.`;
  }
  /** What the client is told when the model has nothing to say. */
  get explanation(): string {
    return `I stopped here. ${this.#why}`;
  }

  /** A round. Gives the tool once it goes round with it. */
  saw(calls: readonly SeenCall[]): string | undefined {
    let news = false;
    for (const { name, arguments: text, result } of calls) {
      const call = JSON.stringify([name, canonicalArguments(text)]);
      const count = (this.#calls.get(call) ?? 0) + 1;
      this.#calls.set(call, count);
      if (count >= this.#repeats) this.#looping ??= { tool: name, why: `The tool ${name} was called ${count} times with the same arguments.` };
      const outcome = JSON.stringify([name, result.content]);
      news ||= (result.status === 'ok' || result.status === 'replayed') && !this.#results.has(outcome);
      this.#results.add(outcome);
    }
    this.#idleRounds = news ? 0 : this.#idleRounds + 1;
    const tool = calls[0]?.name ?? '';
    if (this.#idleRounds >= this.#repeats) this.#looping ??= { tool, why: `The last ${this.#idleRounds} rounds of tool calls brought nothing new.` };
    return this.#looping?.tool;
  }

  get #why(): string {
    return this.#looping?.why ?? '';
  }
}

function canonicalArguments(text: string): string {
  try {
    return canonicalJson(parseJson(text.trim() === '' ? '{}' : text));
  } catch {
    return text;
  }
}

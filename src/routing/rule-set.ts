import type { RuleConfig } from '../contracts/config.ts';
import type { Condition, Matcher, RouteInput, Verdict } from '../contracts/matcher.ts';
import type { RuleReason } from '../contracts/routing.ts';
import { compileMatch } from './compile-match.ts';
import type { ExampleBank } from './embedding/example-bank.ts';
import { KeywordAutomaton } from './keyword-automaton.ts';
import { type RefusedRule, RefusedRules, toRefusedRule } from './refused-rules.ts';

export interface CompiledRule {
  readonly config: RuleConfig;
  readonly condition: Condition;
}
/** The first rule that hits, with its verdict, and what was said of those before it. */
export interface Found {
  rule: CompiledRule | undefined;
  verdict: Verdict | undefined;
  earlier: RuleReason[];
}

/**
 * The rules of one generation, compiled. `first` asks only the rules that can hit: those without keywords, and those of
 * which a keyword occurs; `firstWithReasons` asks every one. Both go through the same conditions in the same order.
 */
export class RuleSet {
  readonly rules: readonly CompiledRule[];
  readonly #automaton = new KeywordAutomaton();
  /** Indexes of rules that must be tested whatever the text is; ascending. */
  readonly #open: number[] = [];
  /** Keyword id to the indexes of the rules that need it. */
  readonly #byKeyword = new Map<number, number[]>();

  /** Throws RefusedRules. */
  constructor(rules: readonly RuleConfig[], matchers: ReadonlyMap<string, Matcher>, timezone: string | undefined, bank: ExampleBank) {
    const refused: RefusedRule[] = [];
    this.rules = rules.flatMap((config) => {
      try {
        const condition = compileMatch(config.match, matchers, {
          ruleId: config.id,
          timezone,
          keyword: (word) => this.#automaton.add(word),
          resembles: (examples, topK) => bank.register(config.id, examples, topK),
        });
        return [{ config, condition }];
      } catch (cause) {
        refused.push(toRefusedRule(config, cause));
        return [];
      }
    });
    if (refused.length > 0) throw new RefusedRules(refused);
    for (const [index, { condition }] of this.rules.entries()) this.#index(index, condition);
    this.#automaton.build();
  }

  #index(index: number, condition: Condition): void {
    const ids = condition.needs?.map((probe) => this.#automaton.idOf(probe));
    if (!ids || ids.includes(undefined)) {
      this.#open.push(index);
      return;
    }
    for (const id of new Set(ids as number[])) {
      const list = this.#byKeyword.get(id);
      if (list) list.push(index);
      else this.#byKeyword.set(id, [index]);
    }
  }

  /** The hot path: synchronous unless a rule that is reached must wait. */
  first(input: RouteInput): CompiledRule | undefined | Promise<CompiledRule | undefined> {
    return this.#seek(this.#candidates(input), 0, input);
  }

  #candidates(input: RouteInput): readonly number[] {
    if (this.#byKeyword.size === 0 || !input.hasText) return this.#open;
    const found = this.#automaton.found(input);
    if (found.size === 0) return this.#open;
    const needing = new Set<number>();
    for (const id of found) for (const index of this.#byKeyword.get(id) ?? []) needing.add(index);
    return mergeAscending(
      [...needing].sort((a, b) => a - b),
      this.#open,
    );
  }

  #seek(candidates: readonly number[], from: number, input: RouteInput): CompiledRule | undefined | Promise<CompiledRule | undefined> {
    for (let at = from; at < candidates.length; at++) {
      const rule = this.rules[candidates[at] ?? -1] as CompiledRule;
      const { hits } = rule.condition;
      if (hits) {
        if (hits(input)) return rule;
        continue;
      }
      const verdict = rule.condition.test(input);
      if (verdict instanceof Promise) return verdict.then((settled) => (settled.hit ? rule : this.#seek(candidates, at + 1, input)));
      if (verdict.hit) return rule;
    }
    return undefined;
  }

  async firstWithReasons(input: RouteInput): Promise<Found> {
    const earlier: RuleReason[] = [];
    for (const rule of this.rules) {
      const asked = rule.condition.test(input);
      const verdict = asked instanceof Promise ? await asked : asked;
      if (verdict.hit) return { rule, verdict, earlier };
      earlier.push({ rule: rule.config.id, why: verdict.why, ...(verdict.score !== undefined && { score: verdict.score }) });
    }
    return { rule: undefined, verdict: undefined, earlier };
  }
}

/** Two ascending lists without common members as one. */
function mergeAscending(a: readonly number[], b: readonly number[]): number[] {
  const merged: number[] = [];
  let inA = 0;
  let inB = 0;
  while (inA < a.length || inB < b.length) {
    const nextA = a[inA] ?? Number.POSITIVE_INFINITY;
    const nextB = b[inB] ?? Number.POSITIVE_INFINITY;
    if (nextA < nextB) inA++;
    else inB++;
    merged.push(Math.min(nextA, nextB));
  }
  return merged;
}

import type { RuleConfig } from '../contracts/config.ts';
import { isRecord } from '../wire/json.ts';
import { RefusedCondition } from './compile-match.ts';

/** A rule that cannot be compiled. */
export interface RefusedRule {
  rule: RuleConfig;
  /** Within the rule: `match`, and the key in it that is wrong. */
  path: (string | number)[];
  message: string;
}

/** All rules of a list that cannot be compiled, by their names. */
export class RefusedRules extends Error {
  readonly refused: readonly RefusedRule[];

  constructor(refused: readonly RefusedRule[]) {
    super(refused.map(({ rule, message }) => `route rule ${rule.id}: ${message}`).join('\n'));
    this.name = 'RefusedRules';
    this.refused = refused;
  }
}

export function toRefusedRule(rule: RuleConfig, thrown: unknown): RefusedRule {
  const message = thrown instanceof Error ? thrown.message : 'its match cannot be read';
  const within = thrown instanceof RefusedCondition ? pathTo(thrown.within, rule.match) : undefined;
  return { rule, path: ['match', ...(within && thrown instanceof RefusedCondition ? [...within, thrown.key] : [])], message };
}

/** Where an object stands inside a `match`; undefined when it was made on the way (a bare expression). */
function pathTo(wanted: object, match: unknown): (string | number)[] | undefined {
  if (match === wanted) return [];
  const children: [string | number, unknown][] = Array.isArray(match) ? [...match.entries()] : isRecord(match) ? Object.entries(match) : [];
  for (const [key, child] of children) {
    const path = pathTo(wanted, child);
    if (path) return [key, ...path];
  }
  return undefined;
}

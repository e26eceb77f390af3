import type { Config, RuleConfig } from './config.ts';
import type { Exchange, RouteDecision, SessionTurn } from './exchange.ts';

/** What a decision looks at: a part of the exchange, so that a dry run needs no whole one. */
export type RouteSubject = Pick<Exchange, 'ask' | 'request' | 'caller' | 'principal'> & { readonly signal?: AbortSignal; session?: SessionTurn | undefined };
/** A rule and why it hit, or why it missed. */
export interface RuleReason {
  rule: string;
  why: string;
  /** How near the text came to a rule by meaning. */
  score?: number;
}
export interface RouteExplanation extends RuleReason {
  decision: RouteDecision;
  /** Every rule before it, in order. */
  earlier: RuleReason[];
}
export interface RouteEngine {
  /** The decision for this exchange; synchronous when no rule must wait. */
  decide(subject: RouteSubject): RouteDecision | Promise<RouteDecision>;
  /** The same decision by the same rules, with reasons; counts nothing. Throws what `decide` throws. */
  explain(subject: RouteSubject): Promise<RouteExplanation>;
  /** Of a decision's rule: only the default took it, by no rule or by one that takes everything. */
  isDefault(rule: string): boolean;
}
/** Of `GET /admin/routes`. Shares are 0 to 1, of the requests that the rules decided. */
export interface RouteStatistics {
  /** ISO 8601. */
  since: string;
  decisions: number;
  /** Of the newest 200: what only the default took. */
  default_share: number | null;
  /** Of the (up to) 2,000 before these; null while there are too few. */
  usual_default_share: number | null;
  drifting: boolean;
  rules: { rule: string; hits: number; share: number | null; last_hit: string | null }[];
  rollout: { percent: number; by: 'session' | 'user' | 'key'; live: number; candidate: number } | null;
}
export interface RoutingRoom {
  /** Compiles a generation's rules; throws a plain Error naming the rule. */
  compile(config: Config): RouteEngine;
  /** What live decisions came to, in this process since its start. */
  statistics(config: Config): RouteStatistics;
  /** The same for other rules under the same configuration (shadow, replay); its decisions are not counted. */
  compileRules(config: Config, rules: readonly RuleConfig[]): RouteEngine;
  /** A text's vector (length 1) by the `embedding` block, kept for a while; undefined: the service is away. */
  embed(config: Config, text: string, signal: AbortSignal): Promise<Float32Array | undefined>;
}

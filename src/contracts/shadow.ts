import type { Answer, Arm, Exchange } from './exchange.ts';
import type { Next } from './plugin.ts';

export interface ShadowRoom {
  /**
   * Samples; whatever it does happens in the background, in forks of its own, and never touches the exchange. Plain `next()`
   * must be called right after it. Undefined: neither in the shadow's sample nor in a rollout's.
   */
  observe(exchange: Exchange, next: Next): Observation | undefined;
  /** Stored comparisons, summed: for `/admin/shadow/report`. */
  report(query: { limit: number }): Promise<ShadowReport>;
  /** Resolves when nothing runs or waits; for tests and shutdown. */
  idle(): Promise<void>;
}
export interface Observation {
  /** The live answer, to compare with: the same answer, whose stream tells how it ended. */
  live(answer: Answer): Answer;
}
/** Live against candidate, over the stored comparisons. Money in integer nano-dollars. */
export interface ShadowReport {
  comparisons: number;
  same_route: number;
  answered: number;
  skipped_for_budget: number;
  usd_today: number;
  usd_per_day: number | null;
  /** One row a pair of rules, most frequent first. */
  routes: {
    live_route: string;
    candidate_route: string;
    live_model: string;
    candidate_model: string;
    count: number;
    answered: number;
    failed: number;
    /** Mean overlap of the two answers' words, 0 to 1; null when none was answered. */
    similarity: number | null;
    live_cost_nano_usd: number;
    candidate_cost_nano_usd: number;
    live_latency_ms: number | null;
    candidate_latency_ms: number | null;
    live_first_token_ms: number | null;
    candidate_first_token_ms: number | null;
    live_length: number | null;
    candidate_length: number | null;
    verdict: string;
  }[];
  /** The newest disagreements, without content unless `trace.capture_content` is on. */
  examples: { at: string; request_id: string; live_route: string; candidate_route: string; text?: string }[];
  /** Both arms of a rollout, each as it served; absent when none was compared. */
  rollout?: RolloutReport | undefined;
}
/** Means of what an arm answered; null when it answered nothing. */
export interface ArmSummary {
  served: number;
  failed: number;
  cost_nano_usd: number | null;
  latency_ms: number | null;
  first_token_ms: number | null;
  length: number | null;
}
export interface RolloutReport {
  comparisons: number;
  same_route: number;
  live: ArmSummary;
  candidate: ArmSummary;
  /** One row a pair of rules that the two lists decide for the same requests, whichever arm served. */
  routes: {
    live_route: string;
    candidate_route: string;
    live_model: string;
    candidate_model: string;
    live: ArmSummary;
    candidate: ArmSummary;
    verdict: string;
  }[];
  examples: { at: string; request_id: string; arm: Arm; live_route: string; candidate_route: string; text?: string }[];
}

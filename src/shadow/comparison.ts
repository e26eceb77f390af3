import type { Arm, ModelCall } from '../contracts/exchange.ts';
import { type ChatCompletion, messageText } from '../wire/chat.ts';

/** One side's answer. Money in integer nano-dollars. */
export interface Side {
  ok: boolean;
  text: string;
  costNanoUsd: number;
  latencyMs: number;
  firstTokenMs: number | undefined;
}
/** One request, decided twice; stored without content unless `trace.capture_content` is on. */
export interface Comparison {
  at: number;
  request_id: string;
  /** Of a rollout: who served; only that side has figures. */
  arm?: Arm;
  live_route: string;
  candidate_route: string;
  live_model: string;
  candidate_model: string;
  /** Tools that only one of the two rules permits. */
  other_tools: string[];
  outcome: 'decided' | 'answered' | 'failed' | 'over_budget' | 'dropped';
  similarity?: number;
  live_cost_nano_usd?: number;
  candidate_cost_nano_usd?: number;
  live_latency_ms?: number;
  candidate_latency_ms?: number;
  live_first_token_ms?: number;
  candidate_first_token_ms?: number;
  live_length?: number;
  candidate_length?: number;
  text?: string;
}

/** Names that only one of the two lists has. */
export function differing(a: readonly string[], b: readonly string[]): string[] {
  return [...a.filter((name) => !b.includes(name)), ...b.filter((name) => !a.includes(name))];
}

export function costOf(calls: readonly ModelCall[]): number {
  return calls.reduce((sum, call) => sum + (call.costNanoUsd ?? 0), 0);
}

/** The text of a whole answer; '' when it is none. */
export function answerText(body: unknown): string {
  if (typeof body !== 'object' || body === null || !('choices' in body) || !Array.isArray(body.choices)) return '';
  const [choice] = body.choices as ChatCompletion['choices'];
  return choice?.message ? messageText(choice.message) : '';
}

export function withAnswers(comparison: Comparison, live: Side, candidate: Side): Comparison {
  return {
    ...comparison,
    outcome: candidate.ok ? 'answered' : 'failed',
    ...(live.ok &&
      candidate.ok && {
        similarity: similarityOf(live.text, candidate.text),
        live_length: [...live.text].length,
        candidate_length: [...candidate.text].length,
      }),
    live_cost_nano_usd: live.costNanoUsd,
    candidate_cost_nano_usd: candidate.costNanoUsd,
    live_latency_ms: Math.round(live.latencyMs),
    candidate_latency_ms: Math.round(candidate.latencyMs),
    ...(live.firstTokenMs !== undefined && { live_first_token_ms: Math.round(live.firstTokenMs) }),
    ...(candidate.firstTokenMs !== undefined && { candidate_first_token_ms: Math.round(candidate.firstTokenMs) }),
  };
}

const PIECES = /[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}]|[\p{L}\p{N}]+/gu;

/** Dice overlap of the two texts' words (CJK: characters), 0 to 1. Two empty texts are the same. */
function similarityOf(a: string, b: string): number {
  const inA = new Set(a.toLowerCase().match(PIECES) ?? []);
  const inB = new Set(b.toLowerCase().match(PIECES) ?? []);
  if (inA.size + inB.size === 0) return 1;
  let shared = 0;
  for (const piece of inA) if (inB.has(piece)) shared++;
  return (2 * shared) / (inA.size + inB.size);
}

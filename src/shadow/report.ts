import type { ShadowReport } from '../contracts/shadow.ts';
import type { Comparison } from './comparison.ts';

/** Sums the comparisons by pair of rules. `limit` bounds the rows and the examples, not what is counted. */
export function reportOf(comparisons: readonly Comparison[], money: { usdToday: number; usdPerDay: number | null }, limit: number): ShadowReport {
  const differing = comparisons.filter((comparison) => comparison.live_route !== comparison.candidate_route);
  return {
    comparisons: comparisons.length,
    same_route: comparisons.length - differing.length,
    answered: countOf(comparisons, 'answered'),
    skipped_for_budget: countOf(comparisons, 'over_budget'),
    usd_today: money.usdToday,
    usd_per_day: money.usdPerDay,
    routes: byPair(comparisons).slice(0, limit).map(rowOf),
    examples: differing
      .slice(-limit)
      .reverse()
      .map(({ at, request_id, live_route, candidate_route, text }) => ({
        at: new Date(at).toISOString(),
        request_id,
        live_route,
        candidate_route,
        ...(text !== undefined && { text }),
      })),
  };
}

/** By rules and models of both sides, most frequent first. */
export function byPair(comparisons: readonly Comparison[]): Comparison[][] {
  const pairs = new Map<string, Comparison[]>();
  for (const comparison of comparisons) {
    const { live_route, candidate_route, live_model, candidate_model } = comparison;
    const key = JSON.stringify([live_route, candidate_route, live_model, candidate_model]);
    const pair = pairs.get(key);
    if (pair) pair.push(comparison);
    else pairs.set(key, [comparison]);
  }
  return [...pairs.values()].sort((a, b) => b.length - a.length);
}

function countOf(comparisons: readonly Comparison[], outcome: Comparison['outcome']): number {
  return comparisons.filter((comparison) => comparison.outcome === outcome).length;
}

function rowOf(pair: readonly Comparison[]): ShadowReport['routes'][number] {
  const [first] = pair as [Comparison];
  const answered = pair.filter(({ outcome }) => outcome === 'answered');
  const row = {
    live_route: first.live_route,
    candidate_route: first.candidate_route,
    live_model: first.live_model,
    candidate_model: first.candidate_model,
    count: pair.length,
    answered: answered.length,
    failed: countOf(pair, 'failed'),
    similarity: mean(answered.map(({ similarity }) => similarity)),
    live_cost_nano_usd: sum(answered.map(({ live_cost_nano_usd }) => live_cost_nano_usd)),
    candidate_cost_nano_usd: sum(answered.map(({ candidate_cost_nano_usd }) => candidate_cost_nano_usd)),
    live_latency_ms: mean(answered.map(({ live_latency_ms }) => live_latency_ms)),
    candidate_latency_ms: mean(answered.map(({ candidate_latency_ms }) => candidate_latency_ms)),
    live_first_token_ms: mean(answered.map(({ live_first_token_ms }) => live_first_token_ms)),
    candidate_first_token_ms: mean(answered.map(({ candidate_first_token_ms }) => candidate_first_token_ms)),
    live_length: mean(answered.map(({ live_length }) => live_length)),
    candidate_length: mean(answered.map(({ candidate_length }) => candidate_length)),
  };
  return { ...row, verdict: verdictOf(row) };
}

export function mean(values: readonly (number | undefined)[]): number | null {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? null : sum(known) / known.length;
}
function sum(values: readonly (number | undefined)[]): number {
  return values.reduce<number>((total, value) => total + (value ?? 0), 0);
}

/** In words, what a person would conclude; no conclusion where nothing was answered. */
function verdictOf(row: Omit<ShadowReport['routes'][number], 'verdict'>): string {
  const parts = [row.live_route === row.candidate_route ? 'same rule' : 'another rule'];
  if (row.live_model !== row.candidate_model) parts.push(`${row.candidate_model} instead of ${row.live_model}`);
  if (row.failed > 0) parts.push(`${row.failed} of ${row.failed + row.answered} failed`);
  if (row.answered > 0) {
    parts.push(compared(row.live_cost_nano_usd, row.candidate_cost_nano_usd, 'dearer', 'cheaper', 'same cost'));
    if (row.live_latency_ms !== null && row.candidate_latency_ms !== null)
      parts.push(compared(row.live_latency_ms, row.candidate_latency_ms, 'slower', 'faster', 'as fast'));
    if (row.similarity !== null) parts.push(`answers share ${Math.round(row.similarity * 100)} % of their words`);
  }
  return parts.join(', ');
}

/** Below five per cent it is noise. */
export function compared(live: number, candidate: number, more: string, less: string, same: string): string {
  if (live === 0) return candidate === 0 ? same : more;
  const change = Math.round((candidate / live - 1) * 100);
  if (Math.abs(change) < 5) return same;
  return `${Math.abs(change)} % ${change > 0 ? more : less}`;
}

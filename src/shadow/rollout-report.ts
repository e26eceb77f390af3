import type { ArmSummary, RolloutReport } from '../contracts/shadow.ts';
import type { Comparison } from './comparison.ts';
import { byPair, compared, mean } from './report.ts';

/** Both arms of a rollout, by what the two rule lists say of the same requests. Undefined: nothing was compared. */
export function rolloutReportOf(comparisons: readonly Comparison[], limit: number): RolloutReport | undefined {
  if (comparisons.length === 0) return undefined;
  const differing = comparisons.filter(({ live_route, candidate_route }) => live_route !== candidate_route);
  return {
    comparisons: comparisons.length,
    same_route: comparisons.length - differing.length,
    live: armOf(comparisons, 'live'),
    candidate: armOf(comparisons, 'candidate'),
    routes: byPair(comparisons)
      .slice(0, limit)
      .map((pair) => {
        const [{ live_route, candidate_route, live_model, candidate_model }] = pair as [Comparison];
        const row = { live_route, candidate_route, live_model, candidate_model, live: armOf(pair, 'live'), candidate: armOf(pair, 'candidate') };
        return { ...row, verdict: verdictOf(row) };
      }),
    examples: differing
      .slice(-limit)
      .reverse()
      .map(({ at, request_id, arm, live_route, candidate_route, text }) => ({
        at: new Date(at).toISOString(),
        request_id,
        arm: arm ?? 'live',
        live_route,
        candidate_route,
        ...(text !== undefined && { text }),
      })),
  };
}

function armOf(comparisons: readonly Comparison[], arm: 'live' | 'candidate'): ArmSummary {
  const served = comparisons.filter((comparison) => comparison.arm === arm);
  const answered = served.filter(({ outcome }) => outcome === 'answered');
  return {
    served: served.length,
    failed: served.length - answered.length,
    cost_nano_usd: mean(answered.map((comparison) => comparison[`${arm}_cost_nano_usd`])),
    latency_ms: mean(answered.map((comparison) => comparison[`${arm}_latency_ms`])),
    first_token_ms: mean(answered.map((comparison) => comparison[`${arm}_first_token_ms`])),
    length: mean(answered.map((comparison) => comparison[`${arm}_length`])),
  };
}

/** Fewer answers of an arm are an anecdote. */
const LEAST_ANSWERS = 20;

function verdictOf({ live_route, candidate_route, live_model, candidate_model, live, candidate }: Omit<RolloutReport['routes'][number], 'verdict'>): string {
  const parts = [live_route === candidate_route ? 'same rule' : 'another rule'];
  if (live_model !== candidate_model) parts.push(`${candidate_model} instead of ${live_model}`);
  if (Math.min(live.served, candidate.served) < LEAST_ANSWERS) return [...parts, 'too few requests to compare'].join(', ');
  if (live.failed + candidate.failed > 0) parts.push(`failed ${percent(live)} → ${percent(candidate)}`);
  if (live.cost_nano_usd !== null && candidate.cost_nano_usd !== null)
    parts.push(compared(live.cost_nano_usd, candidate.cost_nano_usd, 'dearer', 'cheaper', 'same cost'));
  if (live.latency_ms !== null && candidate.latency_ms !== null) parts.push(compared(live.latency_ms, candidate.latency_ms, 'slower', 'faster', 'as fast'));
  return parts.join(', ');
}

function percent({ failed, served }: ArmSummary): string {
  return `${Math.round((100 * failed) / served)} %`;
}

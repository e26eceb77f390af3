import type { Exchange } from '../contracts/exchange.ts';
import type { GuardsRoom } from '../contracts/rooms.ts';
import type { RouteSubject, RoutingRoom } from '../contracts/routing.ts';
import type { Observation } from '../contracts/shadow.ts';
import type { Environment } from '../contracts/telemetry.ts';
import { capturedText } from './captured-text.ts';
import { type Comparison, differing, type Side } from './comparison.ts';
import { followAnswer } from './follow-answer.ts';

/** Compared a second of each arm, at most: a report needs a sample, and each comparison is stored. */
const MOST_A_SECOND = 20;

export interface RolloutWatchDeps {
  routing: Pick<RoutingRoom, 'compileRules'>;
  redact: GuardsRoom['redact'];
  environment: Environment;
  keep(comparison: Comparison): void;
  /** Runs a job in the background; false: there is no room for it. */
  offer(job: () => Promise<void>): boolean;
}

/** What became of requests of either arm, each beside what the other arm's rules would have decided. */
export function createRolloutWatch({ routing, redact, environment, keep, offer }: RolloutWatchDeps): { observe(exchange: Exchange): Observation | undefined } {
  const taken = { live: 0, candidate: 0 };
  let second = 0;

  function isTaken(arm: 'live' | 'candidate'): boolean {
    const now = Math.floor(environment.now() / 1_000);
    if (now !== second) {
      second = now;
      taken.live = 0;
      taken.candidate = 0;
    }
    return ++taken[arm] <= MOST_A_SECOND;
  }

  async function compare(exchange: Exchange, subject: RouteSubject, at: number, side: Side): Promise<void> {
    const { config, route } = exchange;
    const { rollout } = config;
    if (!rollout || !route?.arm) return;
    const candidateServed = route.arm === 'candidate';
    const served = { rule: route.rule, model: route.modelBeforeCost ?? route.model, tools: route.tools ?? [] };
    const other = await decideBy(routing.compileRules(config, candidateServed ? config.route_rules : rollout.rules), subject);
    const [live, candidate] = candidateServed ? [other, served] : [served, other];
    keep({
      at,
      request_id: exchange.id,
      arm: route.arm,
      live_route: live.rule,
      candidate_route: candidate.rule,
      live_model: live.model,
      candidate_model: candidate.model,
      other_tools: differing(live.tools, candidate.tools),
      outcome: side.ok ? 'answered' : 'failed',
      ...measured(route.arm, side),
      ...capturedText(config, subject.request.messages, redact),
    });
  }

  return {
    observe(exchange) {
      const arm = exchange.route?.arm;
      if (!arm || !exchange.config.rollout || exchange.background || !isTaken(arm)) return undefined;
      const { ask, caller, principal, request } = exchange;
      const startedAt = performance.now();
      const at = environment.now();
      const asked = caller && { ...caller, priority: ask.priority ?? 'normal' };
      const subject: RouteSubject = { ask, request: { ...request, messages: [...request.messages] }, caller: asked, principal };
      return {
        live(answer) {
          followAnswer(answer, exchange, startedAt, (side) => {
            // A client that left says nothing about the rules.
            if (!exchange.cancelled) offer(() => compare(exchange, subject, at, side));
          });
          return answer;
        },
      };
    },
  };
}

async function decideBy(
  engine: ReturnType<RoutingRoom['compileRules']>,
  subject: RouteSubject,
): Promise<{ rule: string; model: string; tools: readonly string[] }> {
  try {
    const { rule, model, tools } = await engine.decide(subject);
    return { rule, model, tools: tools ?? [] };
  } catch {
    // The key may not use the other arm's model: a finding.
    return { rule: 'error', model: 'error', tools: [] };
  }
}

function measured(arm: 'live' | 'candidate', { costNanoUsd, latencyMs, firstTokenMs, text }: Side): Partial<Comparison> {
  const length = [...text].length;
  const [cost, latency, first] = [costNanoUsd, Math.round(latencyMs), firstTokenMs === undefined ? undefined : Math.round(firstTokenMs)];
  return arm === 'live'
    ? { live_cost_nano_usd: cost, live_latency_ms: latency, live_length: length, ...(first !== undefined && { live_first_token_ms: first }) }
    : {
        candidate_cost_nano_usd: cost,
        candidate_latency_ms: latency,
        candidate_length: length,
        ...(first !== undefined && { candidate_first_token_ms: first }),
      };
}

import type { ScheduleConfig } from '../contracts/config.ts';
import type { Exchange, RouteDecision } from '../contracts/exchange.ts';
import { inBand } from './bands.ts';

/** The first entry of `cost.schedule` that fits this decision now; undefined: none. An explicit model is left alone. */
export function findEntry(exchange: Exchange, decision: RouteDecision, now: number): ScheduleConfig | undefined {
  if (decision.explicit) return undefined;
  const { config } = exchange;
  return config.cost.schedule.find((entry) => fits(entry, exchange, decision, now));
}

function fits(entry: ScheduleConfig, exchange: Exchange, decision: RouteDecision, now: number): boolean {
  const { caller, config } = exchange;
  const priority = decision.priority ?? caller?.priority ?? 'normal';
  if (entry.except_priority.includes(priority)) return false;
  if (entry.except_routes.includes(decision.rule)) return false;
  if (entry.routes !== undefined && !entry.routes.includes(decision.rule)) return false;
  if (entry.services !== undefined && !entry.services.includes(caller?.service ?? '')) return false;
  if (entry.tiers !== undefined) {
    const { tier } = config.registry.models.get(decision.model) ?? {};
    if (tier === undefined || !entry.tiers.includes(tier)) return false;
  }
  return inBand(entry, now, config.cost.timezone);
}

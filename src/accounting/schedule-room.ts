import type { BudgetConfig, Config } from '../contracts/config.ts';
import type { Exchange, RouteDecision } from '../contracts/exchange.ts';
import type { ScheduleRoom } from '../contracts/rooms.ts';
import type { Environment } from '../contracts/telemetry.ts';
import { canServe, type ServeDeps } from './can-serve.ts';
import { findEntry } from './schedule.ts';
import { isDearer } from './typical-price.ts';

export interface ScheduleDeps extends ServeDeps {
  /** The budgets of this service that are crossed now. */
  crossedFor(service: string, config: Config): readonly BudgetConfig[];
  environment: Environment;
}

/** The model after the hour's schedule, then after the day's budgets. */
export function createScheduleRoom(deps: ScheduleDeps): ScheduleRoom {
  return {
    apply(exchange, routed) {
      const { cost } = exchange.config;
      if (cost.schedule.length === 0 && cost.budgets.length === 0) return routed;
      const now = deps.environment.now();
      let decision = routed;
      const entry = findEntry(exchange, decision, now);
      if (entry) decision = switched(deps, exchange, decision, entry.id, entry.model);
      // A crossed budget holds for an explicit model, too: it is the money that has run out.
      for (const budget of cost.budgets.length > 0 ? deps.crossedFor(exchange.caller?.service ?? '', exchange.config) : []) {
        if (saves(exchange.config, decision.model, budget.switch_to, now)) decision = switched(deps, exchange, decision, budget.id, budget.switch_to);
      }
      return decision;
    },
  };
}

/** The same decision object where the other model cannot take over. */
function switched(deps: ScheduleDeps, exchange: Exchange, decision: RouteDecision, costRule: string, name: string): RouteDecision {
  const model = exchange.config.registry.find(name);
  if (model === undefined || model.id === decision.model || !canServe(deps, exchange, decision, model)) return decision;
  return { ...decision, model: model.id, costRule, modelBeforeCost: decision.modelBeforeCost ?? decision.model };
}

function saves(config: Config, from: string, to: string, now: number): boolean {
  const [model, other] = [config.registry.find(from), config.registry.find(to)];
  return model !== undefined && other !== undefined && isDearer(config, model, other, now);
}

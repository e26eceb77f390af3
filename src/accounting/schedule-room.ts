import type { BudgetConfig, Config } from '../contracts/config.ts';
import { HermesError } from '../contracts/errors.ts';
import type { Exchange, RouteDecision } from '../contracts/exchange.ts';
import type { ScheduleRoom } from '../contracts/rooms.ts';
import type { Environment } from '../contracts/telemetry.ts';
import type { Spender } from './budget-lines.ts';
import { canServe, type ServeDeps } from './can-serve.ts';
import { findEntry } from './schedule.ts';
import { isDearer } from './typical-price.ts';

export interface ScheduleDeps extends ServeDeps {
  /** The budgets that it has crossed now. */
  crossedFor(spender: Spender, config: Config): readonly BudgetConfig[];
  environment: Environment;
}

/** The model after the hour's schedule, then after the day's budgets. */
export function createScheduleRoom(deps: ScheduleDeps): ScheduleRoom {
  return {
    apply(exchange, routed) {
      const { cost } = exchange.config;
      if (cost.schedule.length === 0 && cost.budgets.length === 0) return routed;
      const crossed = cost.budgets.length > 0 ? deps.crossedFor(toSpender(exchange), exchange.config) : [];
      refuseSpent(crossed);
      const now = deps.environment.now();
      let decision = routed;
      const entry = findEntry(exchange, decision, now);
      if (entry) decision = switched(deps, exchange, decision, entry.id, entry.model);
      // A crossed budget holds for an explicit model, too: it is the money that has run out.
      for (const budget of crossed) {
        const { id, switch_to: other } = budget;
        if (other !== undefined && saves(exchange.config, decision.model, other, now)) decision = switched(deps, exchange, decision, id, other);
      }
      return decision;
    },
  };
}

function toSpender({ caller, principal }: Exchange): Spender {
  return {
    service: caller?.service ?? principal?.service ?? '',
    project: caller?.project ?? principal?.project ?? '',
    user: caller?.user,
    key: principal?.id ?? '',
  };
}

function refuseSpent(crossed: readonly BudgetConfig[]): void {
  const refusing = crossed.find(({ action }) => action === 'refuse');
  if (refusing === undefined) return;
  const until = refusing.usd_per_month === undefined ? 'tomorrow' : 'its next period';
  throw new HermesError('budget_exceeded', `The budget "${refusing.id}" is used up: it refuses requests until ${until}, or until an operator lifts it.`);
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

import type { ScheduleRoom } from '../contracts/rooms.ts';
import type { Environment } from '../contracts/telemetry.ts';
import { canServe, findEntry } from './schedule.ts';

export interface ScheduleDeps {
  allows(patterns: readonly string[], name: string): boolean;
  environment: Environment;
}

/** The model after the hour's schedule. */
export function createScheduleRoom({ allows, environment }: ScheduleDeps): ScheduleRoom {
  return {
    apply(exchange, decision) {
      const entry = findEntry(exchange, decision, environment.now());
      if (entry === undefined || entry.model === decision.model) return decision;
      const model = exchange.config.registry.find(entry.model);
      if (model === undefined || !canServe(exchange, model, allows)) return decision;
      return { ...decision, model: model.id, costRule: entry.id, modelBeforeCost: decision.model };
    },
  };
}

import type { Environment } from '../contracts/telemetry.ts';

/**
 * The time of this process's start and what has passed since, for what waits or cools down: a step of the wall clock (NTP, an operator)
 * must neither end nor prolong it by hours. Calendars, prices and signatures go by the wall clock.
 */
export function toSteady(environment: Environment): Environment {
  return { ...environment, now: () => Math.floor(performance.timeOrigin + performance.now()) };
}

import type { Config } from '../contracts/config.ts';

export interface BreakerLimits {
  threshold: number;
  cooldownMs: number;
}
/** What an upstream has that no model says anything of. */
export const DEFAULT_LIMITS: BreakerLimits = { threshold: 5, cooldownMs: 30_000 };

/** By identity. Of the values that the models sharing an upstream have written down, the lowest threshold and the longest cool-down hold. */
export function gatherLimits(config: Config): ReadonlyMap<string, BreakerLimits> {
  const thresholds = new Map<string, number>();
  const cooldowns = new Map<string, number>();
  for (const { failover, upstreams } of config.registry.models.values()) {
    const says = (key: 'failure_threshold' | 'cooldown_ms'): boolean => failover.written?.includes(key) ?? true;
    for (const { identity } of upstreams) {
      if (says('failure_threshold')) thresholds.set(identity, Math.min(failover.failure_threshold, thresholds.get(identity) ?? Number.POSITIVE_INFINITY));
      if (says('cooldown_ms')) cooldowns.set(identity, Math.max(failover.cooldown_ms, cooldowns.get(identity) ?? 0));
    }
  }
  const identities = new Set([...thresholds.keys(), ...cooldowns.keys()]);
  return new Map(
    [...identities].map((identity) => [
      identity,
      { threshold: thresholds.get(identity) ?? DEFAULT_LIMITS.threshold, cooldownMs: cooldowns.get(identity) ?? DEFAULT_LIMITS.cooldownMs },
    ]),
  );
}

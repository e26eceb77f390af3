import type { ModelEntry } from '../contracts/config.ts';
import type { Exchange } from '../contracts/exchange.ts';
import { allows } from '../wire/patterns.ts';

/** The model itself, then its chain of fallbacks. One that the key may not use is passed over, as if it were down: its own fallback follows. */
export function* fallbacks(primary: ModelEntry, { config, principal, background }: Exchange): Generator<ModelEntry> {
  const seen: ModelEntry[] = [];
  for (let model: ModelEntry | undefined = primary; model && !seen.includes(model); ) {
    seen.push(model);
    if (model === primary || allows(principal?.models ?? ['*'], model.id)) yield model;
    // Another model's answer would say nothing of a shadow's candidate.
    const target: string | undefined = background ? undefined : model.failover.fallback_target;
    model = target === undefined ? undefined : (config.registry.models.get(target) ?? config.registry.find(target));
  }
}

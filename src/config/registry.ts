import type { ModelEntry, ModelRegistry } from '../contracts/config.ts';
import type { UpstreamTarget } from '../contracts/exchange.ts';

/** The registry by its three kinds of names: an id beats an alias, an alias beats an upstream's `model_name`. */
export function createRegistry(entries: Iterable<ModelEntry>, defaultModel: string): ModelRegistry {
  const models = new Map<string, ModelEntry>();
  const names = new Map<string, ModelEntry>();
  const upstreams = new Map<string, UpstreamTarget>();
  for (const entry of entries) models.set(entry.id, entry);
  for (const entry of models.values()) {
    for (const alias of entry.aliases) if (!names.has(alias)) names.set(alias, entry);
    for (const target of entry.upstreams) if (!upstreams.has(target.identity)) upstreams.set(target.identity, target);
  }
  // A model that is served at its own address alone is the better owner of a vendor's name than one that lists it among others.
  const byOwnership = [...models.values()].sort((a, b) => Number(a.upstreams.length > 1) - Number(b.upstreams.length > 1));
  for (const entry of byOwnership) {
    for (const target of entry.upstreams) if (target.modelName !== '' && !names.has(target.modelName)) names.set(target.modelName, entry);
  }
  return { models, defaultModel, find: (name) => models.get(name) ?? names.get(name), upstreams: [...upstreams.values()] };
}

import { isRecord } from '../wire/json.ts';
import { defaultModelOf, elements, type Inventory, type KnownProviders, type RawModel, RESERVED_MODELS, strings } from './inventory.ts';
import { didYouMean, oneOf, type Path } from './problems.ts';
import type { Findings } from './references.ts';

/** What the registry needs beyond its form: providers and targets that exist, weights that serve, fallbacks that end. */
export function checkModels(file: Record<string, unknown>, inventory: Inventory, known: KnownProviders, findings: Findings): void {
  checkProviders(file, known, findings);
  for (const model of inventory.models.values()) {
    checkName(model, inventory, defaultModelOf(file, inventory.models, inventory.aliases), findings);
    checkProviderName(model.value.provider, model.at('provider'), inventory, findings);
    const failover = isRecord(model.value.failover) ? model.value.failover : {};
    const upstreams = elements(failover.upstreams);
    if (model.value.provider === undefined && failover.upstreams === undefined) {
      findings.report(model.at(), `needs a \`provider\` (${oneOf(inventory.providers.keys())}), or \`failover.upstreams\``);
    }
    for (const [entry, index] of upstreams) checkTarget(model, entry, [...model.at('failover'), 'upstreams', index], inventory, findings);
    if (upstreams.length > 0 && upstreams.every(([entry]) => entry.weight === 0 || entry.weight === '0')) {
      findings.report([...model.at('failover'), 'upstreams'], 'has only weights of 0, so nothing could serve it: give one of them a weight');
    }
    checkFallback(model, inventory, findings);
  }
  checkCircles(inventory, findings);
}

function checkProviders(file: Record<string, unknown>, known: KnownProviders, findings: Findings): void {
  if (!isRecord(file.providers)) return;
  const types = Object.keys(known);
  for (const [name, entry] of Object.entries(file.providers)) {
    if (!isRecord(entry)) continue;
    const type = entry.type;
    if (name === 'builtin') findings.report(['providers', name], '`builtin` is reserved for embeddings');
    if (type === undefined && !types.includes(name)) findings.report(['providers', name], `needs a \`type\`: one of ${oneOf(types)}`);
    if (typeof type === 'string' && !types.includes(type))
      findings.unlessAdded(['providers', name, 'type'], { kind: 'provider', name: type, said: `\`${type}\` is not a provider type`, known: types });
  }
}

function checkName(model: RawModel, inventory: Inventory, defaultModel: string | undefined, findings: Findings): void {
  if (model.id === 'auto') findings.report([...model.at('id')], '`auto` is reserved: it means "route it"');
  if (model.id === 'default_model' && defaultModel !== model.id) findings.report(model.at('id'), '`default_model` is reserved for the default');
  for (const alias of strings(model.value.aliases)) {
    const path = model.at('aliases');
    const other = inventory.aliases.get(alias);
    if (RESERVED_MODELS.includes(alias)) findings.report(path, `\`${alias}\` is reserved`);
    else if (inventory.models.has(alias) && alias !== model.id) findings.report(path, `\`${alias}\` is another model's id`);
    else if (other !== undefined && other !== model.id) findings.report(path, `\`${alias}\` is already an alias of \`${other}\``);
  }
}

function checkProviderName(provider: unknown, path: Path, inventory: Inventory, findings: Findings): void {
  if (typeof provider !== 'string' || provider === '' || inventory.providers.has(provider)) return;
  findings.unlessAdded(path, { kind: 'provider', name: provider, said: `\`${provider}\` is not a provider`, known: [...inventory.providers.keys()] });
}

function checkTarget(model: RawModel, entry: Record<string, unknown>, path: Path, inventory: Inventory, findings: Findings): void {
  const target = entry.target;
  if (typeof target !== 'string' || target === '') return;
  const known = [...inventory.models.keys(), ...inventory.providers.keys()];
  const kind = targetKind(model.id, target, inventory);
  if (kind === undefined) {
    findings.report([...path, 'target'], `\`${target}\` is neither a model nor a provider${didYouMean(target, known) || `; known: ${oneOf(known)}`}`);
    return;
  }
  if (kind === 'model') {
    const named = inventory.models.get(inventory.idOf(target) ?? '');
    if (named && named.value.provider === undefined) {
      const own = named.id === model.id;
      findings.report(
        [...path, 'target'],
        own ? 'is the model itself, which has no `provider`' : `\`${target}\` has no address of its own, only upstreams: name those`,
      );
    }
    return;
  }
  if (entry.model_name === undefined && model.value.provider !== target && ![...inventory.models.values()].some((other) => other.value.provider === target)) {
    findings.report([...path, 'model_name'], `is missing: no model of the provider \`${target}\` is registered to take it from`);
  }
}

/** A target is a model's id; or a provider's name, also where the model itself bears it. */
export function targetKind(modelId: string, target: string, inventory: Pick<Inventory, 'models' | 'providers' | 'idOf'>): 'model' | 'provider' | undefined {
  const isProvider = inventory.providers.has(target);
  if (target === modelId && isProvider) return 'provider';
  if (target !== 'default_model' && inventory.idOf(target) !== undefined) return 'model';
  return isProvider ? 'provider' : undefined;
}

function fallbackOf(model: RawModel, inventory: Inventory): string | undefined {
  const failover = model.value.failover;
  const target = isRecord(failover) ? failover.fallback_target : undefined;
  return typeof target === 'string' ? inventory.idOf(target) : undefined;
}
function checkFallback(model: RawModel, inventory: Inventory, findings: Findings): void {
  const failover = model.value.failover;
  const target = isRecord(failover) ? failover.fallback_target : undefined;
  if (typeof target !== 'string' || target === '') return;
  const path = [...model.at('failover'), 'fallback_target'];
  if (inventory.idOf(target) === undefined) {
    findings.report(
      path,
      `\`${target}\` is not a model of the registry${didYouMean(target, inventory.models.keys()) || `; known: ${oneOf(inventory.models.keys())}`}`,
    );
  } else if (inventory.idOf(target) === model.id) findings.report(path, `\`${model.id}\` falls back to itself`);
}

/** Told once a circle, at its first model. */
function checkCircles(inventory: Inventory, findings: Findings): void {
  const told = new Set<string>();
  for (const start of inventory.models.values()) {
    const chain = [start.id];
    let next = fallbackOf(start, inventory);
    while (next !== undefined && !chain.includes(next)) {
      chain.push(next);
      const model = inventory.models.get(next);
      next = model ? fallbackOf(model, inventory) : undefined;
    }
    if (next !== start.id || chain.length === 1 || chain.some((id) => told.has(id))) continue;
    for (const id of chain) told.add(id);
    findings.report([...start.at('failover'), 'fallback_target'], `the fallbacks form a cycle: ${[...chain, start.id].join(' -> ')}`);
  }
}

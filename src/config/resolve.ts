import type { FailoverConfig, ModelEntry, ModelRegistry } from '../contracts/config.ts';
import type { UpstreamTarget } from '../contracts/exchange.ts';
import { targetKind } from './check-models.ts';
import { type Inventory, type KnownProviders, mergeModel } from './inventory.ts';
import type { Path } from './problems.ts';
import { createRegistry } from './registry.ts';
import type { ConfigFile, ModelFile, ProviderFile, UpstreamFile } from './schema.ts';
import { FAILOVER_DEFAULTS } from './schema-models.ts';
import { type Block, identityOf, join, toApiBase, toBlock, toPricing, toTarget } from './upstream-target.ts';

export interface ResolveContext {
  file: ConfigFile;
  inventory: Inventory;
  known: KnownProviders;
  secrets: ReadonlyMap<string, string>;
  warn(path: Path, message: string): void;
}

/** Models with their upstreams resolved. The references were checked before: a name that is missing here is a fault of ours. */
export function resolveRegistry(context: ResolveContext, defaultModel: string): ModelRegistry {
  const models = new Map<string, ModelFile>();
  for (const model of context.file.models) {
    const before = models.get(model.id);
    models.set(model.id, before ? mergeModel(before, model) : model);
  }
  return createRegistry(
    [...models.values()].map((model) => toEntry(model, models, context)),
    defaultModel,
  );
}

function toEntry(model: ModelFile, models: ReadonlyMap<string, ModelFile>, context: ResolveContext): ModelEntry {
  const list = model.failover?.upstreams;
  const upstreams = list
    ? list.map((entry, index) => resolveEntry(model, entry, index, models, context))
    : [toTarget(ownBlock(model, context), model, {}, context.secrets)];
  const windows = upstreams.flatMap((target) => target.contextWindow ?? []);
  const answers = upstreams.flatMap((target) => target.maxTokens ?? []);
  return {
    id: model.id,
    aliases: model.aliases ?? [],
    tier: model.tier,
    failover: toFailover(model.failover, context.inventory),
    upstreams,
    pricing: toPricing(model.pricing),
    contextWindow: windows.length > 0 ? Math.min(...windows) : undefined,
    maxTokens: answers.length > 0 ? Math.min(...answers) : undefined,
    ownedBy: model.provider ?? upstreams[0]?.provider ?? 'hermes',
  };
}

function toFailover(failover: ModelFile['failover'], inventory: Inventory): FailoverConfig {
  const { upstreams: _, fallback_target: fallback, ...written } = failover ?? {};
  const given = Object.entries(written).filter(([, value]) => value !== undefined);
  return {
    ...FAILOVER_DEFAULTS,
    ...Object.fromEntries(given),
    written: given.map(([key]) => key),
    ...(fallback === undefined ? {} : { fallback_target: inventory.idOf(fallback) ?? fallback }),
  };
}

function ownBlock(model: ModelFile, context: ResolveContext): Block {
  const providerName = model.provider ?? '';
  const names = { id: model.id, providerName, modelName: model.model_name ?? model.id, pricedAs: model.id };
  return toBlock(names, providerEntry(providerName, context), model, context.known);
}
function providerEntry(name: string, context: ResolveContext): ProviderFile | undefined {
  return Object.hasOwn(context.file.providers, name) ? context.file.providers[name] : undefined;
}

function resolveEntry(model: ModelFile, entry: UpstreamFile, index: number, models: ReadonlyMap<string, ModelFile>, context: ResolveContext): UpstreamTarget {
  const block =
    targetKind(model.id, entry.target, context.inventory) === 'model'
      ? modelTarget(entry, models, context)
      : providerTarget(model, entry, [...(context.inventory.models.get(model.id)?.at('failover') ?? []), 'upstreams', index], models, context);
  return toTarget(block, model, entry, context.secrets);
}

/** A model's own block, with the entry's fields over it. */
function modelTarget(entry: UpstreamFile, models: ReadonlyMap<string, ModelFile>, context: ResolveContext): Block {
  const model = models.get(context.inventory.idOf(entry.target) ?? '');
  if (!model) throw new Error(`no model ${entry.target}`);
  return withEntry(ownBlock(model, context), entry);
}
function withEntry(block: Block, entry: UpstreamFile): Block {
  const { target: _, weight: __, model_name, ...own } = entry;
  const apiBase = own.api_base === undefined ? block.apiBase : toApiBase(block.type, own.api_base);
  const modelName = model_name ?? block.modelName;
  return {
    ...block,
    id: modelName === block.modelName ? block.id : `${entry.target}/${modelName}`,
    modelName,
    apiBase,
    // With an address of its own, the key of the block that it overrides must not go there.
    apiKeyEnv: own.api_key_env ?? (apiBase === block.apiBase ? block.apiKeyEnv : undefined),
    layer: join(block.layer, own),
  };
}

/** A provider with a model name: the entry's, the model's own, or (told) that of the provider's first registered model, then with that model's block. */
function providerTarget(model: ModelFile, entry: UpstreamFile, path: Path, models: ReadonlyMap<string, ModelFile>, context: ResolveContext): Block {
  const { target, weight: _, model_name, ...own } = entry;
  const prefix = (block: Block): Block => ({ ...block, id: `${target}/${block.modelName}` });
  if (model_name === undefined) {
    if (model.provider === target) return prefix(withEntry(ownBlock(model, context), entry));
    const donor = [...models.values()].find((other) => other.provider === target);
    if (!donor) throw new Error(`no model of the provider ${target}`);
    context.warn(path, `has no model_name: takes \`${donor.model_name ?? donor.id}\` with the address, price and window of \`${donor.id}\``);
    return prefix(withEntry(withoutPace(ownBlock(donor, context)), entry));
  }
  const names = { id: `${target}/${model_name}`, providerName: target, modelName: model_name, pricedAs: `${target}/${model_name}` };
  const block = toBlock(names, providerEntry(target, context), own, context.known);
  return knownUpstream(block, own, models, context);
}

/** Time-outs and `max_tokens` are no part of what a provider's target borrows: the listing model's hold. */
function withoutPace(block: Block): Block {
  const { timeout_ms: _, first_token_timeout_ms: __, max_tokens: ___, ...layer } = block.layer;
  return { ...block, layer };
}

/** The same address, key and name as a registered model: the same upstream, whose price and window are known. */
function knownUpstream(block: Block, own: Partial<UpstreamFile>, models: ReadonlyMap<string, ModelFile>, context: ResolveContext): Block {
  const identity = (one: Block) => identityOf(one.apiBase, one.modelName, one.apiKeyEnv);
  for (const other of models.values()) {
    if (other.provider !== block.providerName) continue;
    const theirs = ownBlock(other, context);
    if (identity(theirs) === identity(block)) return { ...block, layer: join(withoutPace(theirs).layer, own), pricedAs: other.id };
  }
  return block;
}

/** Where other `/v1/*` paths go: a model's block, or a provider without a model. */
export function resolvePassthrough(name: string | undefined, registry: ModelRegistry, context: ResolveContext): UpstreamTarget | undefined {
  if (name === undefined) return undefined;
  if (context.inventory.providers.has(name)) {
    const names = { id: name, providerName: name, modelName: '', pricedAs: '' };
    return toTarget(toBlock(names, providerEntry(name, context), {}, context.known), {}, {}, context.secrets);
  }
  return registry.models.get(name)?.upstreams[0];
}

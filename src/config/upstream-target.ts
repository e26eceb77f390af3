import { createHash } from 'node:crypto';
import type { PricingConfig } from '../contracts/config.ts';
import type { UpstreamTarget } from '../contracts/exchange.ts';
import type { KnownProviders } from './inventory.ts';
import type { ModelFile, ProviderFile, UpstreamFile } from './schema.ts';
import { FIRST_TOKEN_TIMEOUT_MS, MAX_QUEUE, QUIRKS, TIMEOUT_MS } from './schema-models.ts';

/** What a provider, a model and an entry of `upstreams` can each say. Later layers win. */
export type Layer = Partial<Omit<ModelFile, 'id' | 'failover' | 'aliases' | 'tier'>>;

/** The settings of a target, before it is one: address, key, name, price and abilities of one origin. */
export interface Block {
  id: string;
  /** The provider's file name. */
  type: string;
  providerName: string;
  modelName: string;
  apiBase: string;
  apiKeyEnv: string | undefined;
  layer: Layer;
  pricedAs: string;
}

/** The SDK's base URL for Anthropic has no /v1, and users write both: one form, so that one upstream has one identity. */
export function toApiBase(type: string, apiBase: string): string {
  return type === 'anthropic' ? apiBase.replace(/\/v1$/, '') : apiBase;
}

/** A later layer's own fields win; maps are joined. */
export function join(earlier: Layer, later: Layer): Layer {
  const out: Record<string, unknown> = { ...earlier };
  for (const [key, value] of Object.entries(later)) if (value !== undefined) out[key] = value;
  return {
    ...out,
    ...(earlier.headers && later.headers ? { headers: { ...earlier.headers, ...later.headers } } : {}),
    ...(earlier.query && later.query ? { query: { ...earlier.query, ...later.query } } : {}),
    ...(earlier.extra_body && later.extra_body ? { extra_body: { ...earlier.extra_body, ...later.extra_body } } : {}),
    ...(earlier.supports && later.supports ? { supports: { ...earlier.supports, ...definedOnly(later.supports) } } : {}),
  };
}
function definedOnly<T extends object>(value: T): Partial<T> {
  return Object.fromEntries(Object.entries(value).filter(([, inner]) => inner !== undefined)) as Partial<T>;
}

/** The block of a provider, with the fields of a model or an entry over it. */
export function toBlock(
  names: { id: string; providerName: string; modelName: string; pricedAs: string },
  provider: ProviderFile | undefined,
  own: Layer,
  known: KnownProviders,
): Block {
  const type = provider?.type ?? names.providerName;
  const defaults = known[type] ?? {};
  const layer = join(provider ?? {}, own);
  const apiBase = toApiBase(type, layer.api_base ?? defaults.apiBase ?? '');
  // A vendor's usual key goes to the vendor alone: an address of one's own gets only a key that was written for it.
  const usual = apiBase === toApiBase(type, defaults.apiBase ?? '') ? defaults.apiKeyEnv : undefined;
  return { ...names, type, apiBase, apiKeyEnv: layer.api_key_env ?? usual, layer };
}

/** One key, one address, one name: one upstream, whoever lists it. A hash, because the key is in it. */
export function identityOf(apiBase: string, modelName: string, apiKey: string | undefined): string {
  return createHash('sha256')
    .update(JSON.stringify([apiBase, modelName, apiKey ?? null]))
    .digest('hex')
    .slice(0, 32);
}

export function toPricing(pricing: ModelFile['pricing']): PricingConfig[] {
  if (pricing === undefined) return [];
  const list = Array.isArray(pricing) ? pricing : [pricing];
  return [...list].sort((a, b) => Date.parse(b.from ?? '0001-01-01') - Date.parse(a.from ?? '0001-01-01'));
}

/** `listing`: the model whose list it stands in; its time-outs and `max_tokens` are used where the target says nothing. */
export function toTarget(block: Block, listing: Layer, entry: Partial<UpstreamFile>, secrets: ReadonlyMap<string, string>): UpstreamTarget {
  const { layer } = block;
  const timeoutMs = layer.timeout_ms ?? listing.timeout_ms ?? TIMEOUT_MS;
  const maxConcurrent = layer.max_concurrent ?? listing.max_concurrent ?? 0;
  const apiKey = block.apiKeyEnv === undefined ? undefined : secrets.get(block.apiKeyEnv);
  const quirks: Record<string, unknown> = {};
  for (const name of QUIRKS) if (layer[name] !== undefined) quirks[name] = layer[name];
  const target = {
    id: block.id,
    identity: identityOf(block.apiBase, block.modelName, apiKey),
    provider: block.type,
    modelName: block.modelName,
    apiBase: block.apiBase,
    apiKeyEnv: block.apiKeyEnv,
    apiVersion: layer.api_version,
    headers: layer.headers ?? {},
    query: layer.query ?? {},
    extraBody: layer.extra_body ?? {},
    maxTokens: layer.max_tokens ?? listing.max_tokens,
    contextWindow: layer.context_window,
    timeoutMs,
    firstTokenTimeoutMs: layer.first_token_timeout_ms ?? listing.first_token_timeout_ms ?? Math.min(FIRST_TOKEN_TIMEOUT_MS, timeoutMs),
    ...(maxConcurrent === 0 ? {} : { maxConcurrent, maxQueue: layer.max_queue ?? listing.max_queue ?? MAX_QUEUE }),
    supports: { vision: layer.supports?.vision ?? true, tools: layer.supports?.tools ?? true, json_schema: layer.supports?.json_schema ?? true },
    reasoning: layer.reasoning,
    pricedAs: block.pricedAs,
    ...(entry.pricing === undefined ? {} : { pricing: toPricing(entry.pricing) }),
    weight: entry.weight ?? 1,
    quirks,
  };
  return hideKey(target, apiKey);
}
/** Not enumerable: JSON, loggers and spreads never see it. */
function hideKey<T extends object>(target: T, apiKey: string | undefined): T & { readonly apiKey: string | undefined } {
  return Object.defineProperty(target, 'apiKey', { value: apiKey, enumerable: false }) as T & { readonly apiKey: string | undefined };
}

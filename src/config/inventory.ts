import { isRecord } from '../wire/json.ts';
import type { Path } from './problems.ts';

/** What a provider brings along when the configuration is silent; told by the provider files themselves. */
interface ProviderDefaults {
  apiBase?: string | undefined;
  apiKeyEnv?: string | undefined;
}
export type KnownProviders = Readonly<Record<string, ProviderDefaults>>;
/** For who reads a file without the folder of providers; a test ties it to what that folder says. */
export const BUILT_IN_PROVIDERS: KnownProviders = {
  openai: { apiBase: 'https://api.openai.com/v1', apiKeyEnv: 'OPENAI_API_KEY' },
  anthropic: { apiBase: 'https://api.anthropic.com', apiKeyEnv: 'ANTHROPIC_API_KEY' },
  simulator: { apiBase: 'simulator://local' },
};
/** Names with a meaning of their own in `model`. */
export const RESERVED_MODELS = ['auto', 'default_model'];

/** Blocks of a model that are merged key by key; everything else is replaced by the later one. */
const MERGED_BLOCKS = ['failover', 'supports', 'headers', 'query', 'extra_body'];
/** A model id that stands twice is one model; later keys win. */
export function mergeModel<T extends Record<string, unknown>>(earlier: T, later: T): T {
  const merged: Record<string, unknown> = { ...earlier };
  for (const [key, value] of Object.entries(later)) {
    if (value === undefined) continue;
    const before = merged[key];
    merged[key] = MERGED_BLOCKS.includes(key) && isRecord(before) && isRecord(value) ? { ...before, ...definedOnly(value) } : value;
  }
  return merged as T;
}
function definedOnly(value: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([, inner]) => inner !== undefined));
}

export interface RawModel {
  readonly id: string;
  readonly value: Record<string, unknown>;
  /** Where a key of it was written last. */
  at(key?: string): Path;
}
/** The names that a file defines, read leniently, so that references can be checked although other parts of the file are wrong. */
export interface Inventory {
  readonly models: ReadonlyMap<string, RawModel>;
  /** Alias to id. */
  readonly aliases: ReadonlyMap<string, string>;
  /** Name to type; undefined while its entry does not say one that is known. */
  readonly providers: ReadonlyMap<string, string | undefined>;
  /** Of an MCP server, whose tools only it knows: `<id>.*`. */
  readonly tools: ReadonlySet<string>;
  readonly rules: ReadonlySet<string>;
  /** By id, alias or `default_model`. */
  idOf(name: string): string | undefined;
}

export function elements(value: unknown): [Record<string, unknown>, number][] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((item: unknown, index): [Record<string, unknown>, number][] => (isRecord(item) ? [[item, index]] : []));
}
export function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}
function ids(value: unknown): Set<string> {
  return new Set(elements(value).flatMap(([item]) => (typeof item.id === 'string' ? [item.id] : [])));
}

function toolNames(value: unknown): Set<string> {
  return new Set(elements(value).flatMap(([item]) => (typeof item.id === 'string' ? [item.mcp === undefined ? item.id : `${item.id}.*`] : [])));
}

export function takeInventory(file: Record<string, unknown>, known: KnownProviders): Inventory {
  const models = new Map<string, RawModel>();
  const places = new Map<string, [Record<string, unknown>, number][]>();
  for (const [item, index] of elements(file.models)) {
    const id = item.id;
    if (typeof id !== 'string' || id === '') continue;
    const written = [...(places.get(id) ?? []), [item, index] as [Record<string, unknown>, number]];
    places.set(id, written);
    const at = (key?: string): Path => {
      const place = key === undefined ? written[0] : (written.findLast(([one]) => one[key] !== undefined) ?? written[0]);
      return key === undefined ? ['models', place?.[1] ?? index] : ['models', place?.[1] ?? index, key];
    };
    const before = models.get(id);
    models.set(id, { id, value: before ? mergeModel(before.value, item) : item, at });
  }
  const aliases = new Map<string, string>();
  for (const model of models.values()) for (const alias of strings(model.value.aliases)) if (!aliases.has(alias)) aliases.set(alias, model.id);

  const providers = new Map<string, string | undefined>(Object.keys(known).map((name) => [name, name]));
  if (isRecord(file.providers)) {
    for (const [name, entry] of Object.entries(file.providers)) {
      const type = isRecord(entry) && typeof entry.type === 'string' ? entry.type : name;
      providers.set(name, Object.hasOwn(known, type) ? type : undefined);
    }
  }
  const idOf = (name: string) =>
    name === 'default_model' && !models.has(name) ? defaultModelOf(file, models, aliases) : models.has(name) ? name : aliases.get(name);
  return { models, aliases, providers, tools: toolNames(file.tools), rules: ids(file.route_rules), idOf };
}

/** `default_model`, else a model of that name, else the first. */
export function defaultModelOf(file: Record<string, unknown>, models: ReadonlyMap<string, unknown>, aliases: ReadonlyMap<string, string>): string | undefined {
  const named = file.default_model;
  if (typeof named === 'string' && named !== 'default_model') return models.has(named) ? named : aliases.get(named);
  return models.has('default_model') ? 'default_model' : models.keys().next().value;
}

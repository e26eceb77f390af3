import type { Config, ModelEntry } from '../contracts/config.ts';
import { HermesError } from '../contracts/errors.ts';
import type { Exchange } from '../contracts/exchange.ts';
import type { AccessRoom } from '../contracts/rooms.ts';

/** In the form of the SDK that asks: OpenAI's, or Anthropic's. */
type ModelObject = { id: string; object: 'model'; created: number; owned_by: string } | { type: 'model'; id: string; display_name: string; created_at: string };
type ModelList = { object: 'list'; data: ModelObject[] } | { data: ModelObject[]; has_more: false; first_id: string | null; last_id: string | null };

/** A fixed time: the registry has none of its own, and a list must not change by being asked for. */
const CREATED = 1_735_689_600;

function toModel(exchange: Exchange, id: string, ownedBy: string): ModelObject {
  if (asksAnthropic(exchange)) return { type: 'model', id, display_name: id, created_at: new Date(CREATED * 1000).toISOString() };
  return { id, object: 'model', created: CREATED, owned_by: ownedBy };
}

function asksAnthropic({ headers }: Exchange): boolean {
  return headers['anthropic-version'] !== undefined;
}

function usable(config: Config, exchange: Exchange, access: AccessRoom): ModelEntry[] {
  return [...config.registry.models.values()].filter(({ id }) => access.allows(exchange.principal?.models ?? [], id));
}

/** The registry plus `auto`; only what this key may use. */
export function listModels(exchange: Exchange, access: AccessRoom): ModelList {
  const models = usable(exchange.config, exchange, access).map(({ id, ownedBy }) => toModel(exchange, id, ownedBy));
  const data = [toModel(exchange, 'auto', 'hermes'), ...models];
  // One page, whatever its `limit`: a registry is short.
  if (asksAnthropic(exchange)) return { data, has_more: false, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null };
  return { object: 'list', data };
}

/** A hidden model is not found, as an unknown one is. */
export function showModel(exchange: Exchange, access: AccessRoom, id: string): ModelObject {
  if (id === 'auto') return toModel(exchange, 'auto', 'hermes');
  const models = usable(exchange.config, exchange, access);
  const found = exchange.config.registry.find(id);
  if (found === undefined || !models.includes(found)) {
    throw new HermesError(
      'model_not_found',
      `The model '${id.slice(0, 128)}' does not exist or you do not have access to it. Available: ${['auto', ...models.map((model) => model.id)].join(', ')}.`,
      { param: 'model' },
    );
  }
  return toModel(exchange, found.id, found.ownedBy);
}

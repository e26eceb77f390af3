import type { Config, ModelEntry } from '../contracts/config.ts';
import { HermesError } from '../contracts/errors.ts';
import type { Exchange } from '../contracts/exchange.ts';
import type { AccessRoom } from '../contracts/rooms.ts';

interface ModelObject {
  id: string;
  object: 'model';
  created: number;
  owned_by: string;
}

/** A fixed time: the registry has none of its own, and a list must not change by being asked for. */
const CREATED = 1_735_689_600;

function toModel(id: string, ownedBy: string): ModelObject {
  return { id, object: 'model', created: CREATED, owned_by: ownedBy };
}

function usable(config: Config, exchange: Exchange, access: AccessRoom): ModelEntry[] {
  return [...config.registry.models.values()].filter(({ id }) => access.allows(exchange.principal?.models ?? [], id));
}

/** The registry plus `auto`; only what this key may use. */
export function listModels(exchange: Exchange, access: AccessRoom): { object: 'list'; data: ModelObject[] } {
  const models = usable(exchange.config, exchange, access).map(({ id, ownedBy }) => toModel(id, ownedBy));
  return { object: 'list', data: [toModel('auto', 'hermes'), ...models] };
}

/** A hidden model is not found, as an unknown one is. */
export function showModel(exchange: Exchange, access: AccessRoom, id: string): ModelObject {
  if (id === 'auto') return toModel('auto', 'hermes');
  const models = usable(exchange.config, exchange, access);
  const found = exchange.config.registry.find(id);
  if (found === undefined || !models.includes(found)) {
    throw new HermesError(
      'model_not_found',
      `The model '${id.slice(0, 128)}' does not exist or you do not have access to it. Available: ${['auto', ...models.map((model) => model.id)].join(', ')}.`,
      { param: 'model' },
    );
  }
  return toModel(found.id, found.ownedBy);
}

import type { Config, ModelEntry } from '../contracts/config.ts';
import { HermesError } from '../contracts/errors.ts';
import type { Principal } from '../contracts/exchange.ts';
import type { RouteSubject } from '../contracts/routing.ts';

export type Allows = (patterns: readonly string[], name: string) => boolean;

/** The model that the caller names itself; undefined: route it. Throws 404 for one that does not exist, 403 for one that the key may not use. */
export function namedModel(subject: RouteSubject, config: Config, allows: Allows): ModelEntry | undefined {
  const { preferModel } = subject.ask;
  if (preferModel !== undefined && preferModel !== 'auto') return find(preferModel, 'prefer_model', subject, config, allows);
  const { model } = subject.request;
  if (model === undefined || model === null || model === 'auto') return undefined;
  if (config.routing.unknown_model === 'route' && !config.registry.find(model)) return undefined;
  return find(model, 'model', subject, config, allows);
}

function find(name: string, param: string, subject: RouteSubject, config: Config, allows: Allows): ModelEntry {
  const entry = config.registry.find(name);
  if (!entry) {
    throw new HermesError('model_not_found', `There is no model ${JSON.stringify(name.slice(0, 100))}. ${available(subject.principal, config, allows)}`, {
      param,
    });
  }
  checkModel(entry.id, param, subject.principal, config, allows);
  return entry;
}

/** Throws 403 when the key may not use the model, chosen or routed. */
export function checkModel(id: string, param: string, principal: Principal | undefined, config: Config, allows: Allows): void {
  if (!principal || allows(principal.models, id)) return;
  throw new HermesError('model_not_allowed', `This key may not use the model ${JSON.stringify(id)}. ${available(principal, config, allows)}`, { param });
}

/** At most fifty names: the message is for people, `/v1/models` has them all. */
function available(principal: Principal | undefined, config: Config, allows: Allows): string {
  const ids = [...config.registry.models.keys()].filter((id) => !principal || allows(principal.models, id));
  const more = ids.length > 50 ? ` and ${ids.length - 50} more (GET /v1/models)` : '';
  return `Available: ${['auto', ...ids.slice(0, 50)].join(', ')}${more}.`;
}

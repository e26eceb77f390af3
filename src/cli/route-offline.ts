import { type House, systemEnvironment } from '../app/house.ts';
import { createConfigReader } from '../app/read-config.ts';
import type { LoadOptions } from '../config/load.ts';
import type { Config, Priority } from '../contracts/config.ts';
import type { Principal } from '../contracts/exchange.ts';
import type { RouteSubject } from '../contracts/routing.ts';
import type { RecordedRequest } from '../routing/recorded-traffic.ts';
import { createQuietHouse } from './quiet-house.ts';

/** May do everything: the question is what the rules do. */
export const ANYBODY: Principal = {
  id: 'debug',
  service: 'default',
  services: ['*'],
  project: 'default',
  projects: ['*'],
  admin: true,
  models: ['*'],
  tools: ['*'],
  userLevels: ['*'],
  priorities: ['*'],
  passthrough: [],
};

/** Makes the rooms of a configuration without its stores, for as long as `work` takes. `now`: what the rules take for the time. */
export async function withRules<T>(options: LoadOptions, work: (house: House, config: Config) => Promise<T>, now?: () => number): Promise<T> {
  const { registries, read } = await createConfigReader(options);
  const environment = now ? { ...systemEnvironment, now } : systemEnvironment;
  const house = await createQuietHouse(read(), registries, environment);
  try {
    return await work(house, house.generation().config);
  } finally {
    await house.close();
  }
}

/** A recorded request as the rules look at it, for somebody who may do everything. */
export function toSubject({ messages, service, project, userLevel, priority, session }: RecordedRequest): RouteSubject {
  const asked = priority as Priority | undefined;
  return {
    ask: { ...(asked && { priority: asked }), ...(session !== undefined && { sessionId: session }) },
    request: { messages },
    caller: { service: service ?? 'default', project: project ?? 'default', user: undefined, userLevel, priority: asked ?? 'normal' },
    principal: ANYBODY,
  };
}

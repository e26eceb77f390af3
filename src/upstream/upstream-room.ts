import type { Config, ModelEntry } from '../contracts/config.ts';
import type { Answer, Exchange } from '../contracts/exchange.ts';
import type { HotStore } from '../contracts/hot-store.ts';
import type { UpstreamRoom } from '../contracts/rooms.ts';
import type { Environment, Log, Metrics } from '../contracts/telemetry.ts';
import { Balancer } from './balancer.ts';
import { Breakers, isKeyMissing, stateOf } from './breakers.ts';
import { failover } from './failover.ts';
import { HeldBytes } from './held-bytes.ts';
import { Places, placeKey } from './places.ts';

export interface UpstreamDeps {
  /** The innermost step. */
  send(exchange: Exchange): Promise<Answer>;
  environment: Environment;
  metrics: Metrics;
  log: Log;
  /** Where instances share what they learn of upstreams. */
  hot?: HotStore | undefined;
  /** The memory of answers that are held back as a whole. */
  held?: HeldBytes | undefined;
}

export function createUpstreamRoom({ send, environment, metrics, log, hot, held = new HeldBytes() }: UpstreamDeps): UpstreamRoom {
  const breakers = new Breakers({ environment, metrics, log, hot });
  const balancer = new Balancer();
  const places = new Places();
  const deps = { breakers, balancer, places, environment, held };
  // The administration names upstreams by id; the newest configuration seen says which those are.
  let seen: Config | undefined;

  return {
    failover(exchange, next, handed) {
      if (seen !== exchange.config) {
        seen = exchange.config;
        breakers.states(seen);
      }
      return failover(deps, exchange, next, handed);
    },
    send,
    states(config) {
      seen = config;
      return breakers.states(config);
    },
    async look(config) {
      await breakers.refresh(config.registry.upstreams);
    },
    preview(model: ModelEntry, session, project = '') {
      const now = environment.now();
      const callable = model.upstreams.filter((target) => target.weight > 0 && !isKeyMissing(target) && breakers.of(target).available(now));
      const sticky = model.failover.affinity === 'session' && session !== undefined ? places.get(placeKey(model.id, project, session)) : undefined;
      const picked = callable.find(({ identity }) => identity === sticky) ?? balancer.preview(model.id, model.failover.strategy, callable, now);
      return model.upstreams.map((target) => ({
        upstream: target.id,
        weight: target.weight,
        state: stateOf(target, breakers.of(target), now),
        picked: target === picked,
      }));
    },
    drain: (id, config) => breakers.drain(id, config ?? seen),
    reset: (id, config) => breakers.reset(id, config ?? seen),
  };
}

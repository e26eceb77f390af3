import type { Config, PricingConfig } from '../contracts/config.ts';
import type { ModelCall, UpstreamTarget } from '../contracts/exchange.ts';

const NONE: readonly PricingConfig[] = [];

/** A target's prices: its list entry's own, else those of the model that its block came from. Empty: nobody gave a price. */
export function pricingOf(config: Config, target: Pick<UpstreamTarget, 'pricing' | 'pricedAs'>): readonly PricingConfig[] {
  return target.pricing ?? config.registry.models.get(target.pricedAs)?.pricing ?? NONE;
}

/** The prices of a call that was made: the same by what it says of its upstream. */
export function pricingOfCall(config: Config, call: Pick<ModelCall, 'model' | 'upstream' | 'upstreamIdentity'>): readonly PricingConfig[] {
  const model = config.registry.models.get(call.model);
  const target =
    model?.upstreams.find(({ id, identity }) => id === call.upstream && identity === call.upstreamIdentity) ??
    model?.upstreams.find(({ id }) => id === call.upstream);
  return target ? pricingOf(config, target) : (model?.pricing ?? NONE);
}

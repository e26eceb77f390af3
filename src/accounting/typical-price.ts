import type { Config, ModelEntry } from '../contracts/config.ts';
import { priceCall } from './price.ts';
import { pricingOf } from './pricing-of.ts';

/** What models are compared by: one call of three times as many tokens in as out, which most traffic is like. */
const TYPICAL = { answered: true, tokens: { input: 3_000_000, cached: 0, cacheWrite: 0, output: 1_000_000, reasoning: 0 } };
const TIERS = ['low', 'mid', 'high'];

/** Nano-dollars of a typical call now, on average over the model's upstreams by weight; undefined when one of them has no price. */
export function typicalPrice(config: Config, model: ModelEntry, at: number): number | undefined {
  const serving = model.upstreams.filter(({ weight }) => weight > 0);
  const upstreams = serving.length > 0 ? serving : model.upstreams;
  let [sum, weights] = [0, 0];
  for (const target of upstreams) {
    const price = priceCall(config, pricingOf(config, target), { ...TYPICAL, startedAt: at });
    if (price === undefined) return undefined;
    const weight = target.weight || 1;
    sum += price * weight;
    weights += weight;
  }
  return sum / weights;
}

/**
 * Is `model` dearer than `other`? By price where both have one, else by tier where both have one. A model of known price is
 * dearer than one whose price nobody gave: its operator named that one as the way to save.
 */
export function isDearer(config: Config, model: ModelEntry, other: ModelEntry, at: number): boolean {
  const [price, otherPrice] = [typicalPrice(config, model, at), typicalPrice(config, other, at)];
  if (price !== undefined && otherPrice !== undefined) return price > otherPrice;
  if (model.tier !== undefined && other.tier !== undefined) return TIERS.indexOf(model.tier) > TIERS.indexOf(other.tier);
  return price !== undefined && price > 0;
}

import type { Config, PricingConfig } from '../contracts/config.ts';
import type { ModelCall, TokenCounts } from '../contracts/exchange.ts';
import { inBand } from './bands.ts';

/** Prices are dollars per million tokens: thousandths of a nano-dollar per token times a million. */
const NANO_PER_USD = 1_000_000_000n;
const MILLION = 1_000_000n;
/** Prices have at most nine decimals; beyond that they are rounded. */
const SCALE = 1_000_000_000n;

function toScaled(price: number): bigint {
  return BigInt(Math.round(price * Number(SCALE)));
}

/**
 * What a call cost in integer nano-dollars, rounded once, half up; undefined when the model has no price. Cached tokens
 * without a price of their own cost as input, cache writes too; a reasoning price replaces the output price for reasoning
 * tokens; bands multiply token prices by the call's start. Nothing is owed for a call that brought no answer at all.
 */
export function priceCall(config: Config, pricings: readonly PricingConfig[], call: ModelCall): number | undefined {
  const pricing = pricings.find(({ from }) => from === undefined || Date.parse(from) <= call.startedAt);
  if (pricing === undefined) return undefined;
  if (!call.answered) return 0;
  const multiply = pricing.bands.find((band) => inBand(band, call.startedAt, config.cost.timezone))?.multiply ?? 1;
  const tokens = tokenCost(pricing, call.tokens) * toScaled(multiply);
  const request = toScaled(pricing.per_request ?? 0) * MILLION * SCALE;
  const numerator = (tokens + request) * NANO_PER_USD;
  const denominator = SCALE * SCALE * MILLION;
  return Number((2n * numerator + denominator) / (2n * denominator));
}

/** Scaled dollars times a million. */
function tokenCost(pricing: PricingConfig, tokens: TokenCounts): bigint {
  const { input_per_million, output_per_million } = pricing;
  const plain = Math.max(0, tokens.input - tokens.cached - tokens.cacheWrite);
  const said = Math.max(0, tokens.output - tokens.reasoning);
  const parts: [number, number][] = [
    [plain, input_per_million],
    [tokens.cached, pricing.cached_input_per_million ?? input_per_million],
    [tokens.cacheWrite, pricing.cache_write_per_million ?? input_per_million],
    [said, output_per_million],
    [tokens.reasoning, pricing.reasoning_per_million ?? output_per_million],
  ];
  return parts.reduce((sum, [count, price]) => sum + BigInt(count) * toScaled(price), 0n);
}

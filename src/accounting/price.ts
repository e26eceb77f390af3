import type { Config, PricingConfig } from '../contracts/config.ts';
import type { ModelCall, TokenCounts } from '../contracts/exchange.ts';
import { inBand } from './bands.ts';
import { isDay, startOfDay } from './calendar.ts';

const NANO_PER_USD = 1_000_000_000n;
const MILLION = 1_000_000n;
/** Prices have at most nine decimals; beyond that they are rounded. */
const SCALE = 1_000_000_000n;

function toScaled(price: number): bigint {
  return BigInt(Math.round(price * Number(SCALE)));
}

/** The newest that has begun; a date without a time begins with that day in `cost.timezone`. */
function findPricing(pricings: readonly PricingConfig[], at: number, timezone: string): PricingConfig | undefined {
  return pricings.find(({ from }) => from === undefined || (isDay(from) ? startOfDay(from, timezone) : Date.parse(from)) <= at);
}

/**
 * What a call cost in integer nano-dollars, rounded once, half up; undefined when there is no price. Cached tokens without a
 * price of their own cost as input, cache writes too; a reasoning price replaces the output price for reasoning tokens; bands
 * multiply token prices by the call's start. Tokens that the upstream itself counted are owed even where it gave no answer;
 * a price for each request is not.
 */
export function priceCall(
  config: Config,
  pricings: readonly PricingConfig[],
  { startedAt, tokens, answered }: Pick<ModelCall, 'startedAt' | 'tokens' | 'answered'>,
): number | undefined {
  const pricing = findPricing(pricings, startedAt, config.cost.timezone);
  if (pricing === undefined) return undefined;
  const multiply = pricing.bands.find((band) => inBand(band, startedAt, config.cost.timezone))?.multiply ?? 1;
  const request = answered ? toScaled(pricing.per_request ?? 0) * MILLION * SCALE : 0n;
  const numerator = (tokenCost(pricing, tokens) * toScaled(multiply) + request) * NANO_PER_USD;
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

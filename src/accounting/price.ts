import type { Config, PricingConfig } from '../contracts/config.ts';
import type { ModelCall, TokenCounts } from '../contracts/exchange.ts';
import { inBand } from './bands.ts';
import { isDay, startOfDay } from './calendar.ts';

const NANO_PER_USD = 1_000_000_000n;
const MILLION = 1_000_000;
/** Prices have at most nine decimals; beyond that they are rounded. */
const SCALE = 1_000_000_000;
/** Up to here a sum divided by a million is so far from the next integer that floating point cannot round it there. */
const MOST_PLAIN = 2 ** 48;

function toScaled(price: number): number {
  return Math.round(price * SCALE);
}

/** A pricing's prices, scaled to integers once. */
interface Scaled {
  input: number;
  cached: number;
  cacheWrite: number;
  output: number;
  reasoning: number;
  request: number;
}
const scaled = new WeakMap<PricingConfig, Scaled>();
function scaledOf(pricing: PricingConfig): Scaled {
  let prices = scaled.get(pricing);
  if (prices === undefined) {
    const { input_per_million: input, output_per_million: output } = pricing;
    prices = {
      input: toScaled(input),
      cached: toScaled(pricing.cached_input_per_million ?? input),
      cacheWrite: toScaled(pricing.cache_write_per_million ?? input),
      output: toScaled(output),
      reasoning: toScaled(pricing.reasoning_per_million ?? output),
      request: toScaled(pricing.per_request ?? 0),
    };
    scaled.set(pricing, prices);
  }
  return prices;
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
  const prices = scaledOf(pricing);
  const multiply = pricing.bands.length === 0 ? 1 : (pricing.bands.find((band) => inBand(band, startedAt, config.cost.timezone))?.multiply ?? 1);
  const plain = multiply === 1 && prices.request === 0 ? plainTokenCost(prices, tokens) : MOST_PLAIN;
  // A scaled dollar is a nano-dollar: all that is left to do is to divide by a million and to round.
  if (plain < MOST_PLAIN) return Math.floor((2 * plain + MILLION) / (2 * MILLION));
  const request = answered ? BigInt(prices.request) * BigInt(MILLION) * BigInt(SCALE) : 0n;
  const numerator = (tokenCost(prices, tokens) * BigInt(toScaled(multiply)) + request) * NANO_PER_USD;
  const denominator = BigInt(SCALE) * BigInt(SCALE) * BigInt(MILLION);
  return Number((2n * numerator + denominator) / (2n * denominator));
}

/** Scaled dollars times a million; not exact beyond 2^53. */
function plainTokenCost(prices: Scaled, tokens: TokenCounts): number {
  const { plain, said } = unclassed(tokens);
  return (
    plain * prices.input + tokens.cached * prices.cached + tokens.cacheWrite * prices.cacheWrite + said * prices.output + tokens.reasoning * prices.reasoning
  );
}

function tokenCost(prices: Scaled, tokens: TokenCounts): bigint {
  const { plain, said } = unclassed(tokens);
  const parts: [number, number][] = [
    [plain, prices.input],
    [tokens.cached, prices.cached],
    [tokens.cacheWrite, prices.cacheWrite],
    [said, prices.output],
    [tokens.reasoning, prices.reasoning],
  ];
  return parts.reduce((sum, [count, price]) => sum + BigInt(count) * BigInt(price), 0n);
}

/** Tokens that no class of their own has a price for. */
function unclassed({ input, cached, cacheWrite, output, reasoning }: TokenCounts): { plain: number; said: number } {
  return { plain: Math.max(0, input - cached - cacheWrite), said: Math.max(0, output - reasoning) };
}

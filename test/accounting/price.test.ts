import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { createAccountingRoom } from '../../src/accounting/accounting-room.ts';
import { priceCall } from '../../src/accounting/price.ts';
import { pricingOf } from '../../src/accounting/pricing-of.ts';
import { HermesError } from '../../src/contracts/errors.ts';
import { makeConfig } from '../config/make-config.ts';
import { makeCall, NO_TOKENS } from './accounting-kit.ts';

const config = makeConfig({ cost: { timezone: 'Asia/Shanghai' } });
const base = { input_per_million: 0.15, output_per_million: 0.6, bands: [] };
const tokens = (over: object) => ({ ...NO_TOKENS, ...over });
const price = (pricing: Parameters<typeof priceCall>[1][number], over: object): number | undefined => priceCall(config, [pricing], makeCall(over));

/** A decimal in the shortest form that Number gives, as an exact fraction over 10^places. */
function toFraction(value: number): { top: bigint; bottom: bigint } {
  const [mantissa = '0', exponent = '0'] = value.toString().split('e');
  const [whole = '0', decimals = ''] = mantissa.split('.');
  const shift = Number(exponent) - decimals.length;
  const digits = BigInt(whole + decimals);
  return shift >= 0 ? { top: digits * 10n ** BigInt(shift), bottom: 1n } : { top: digits, bottom: 10n ** BigInt(-shift) };
}
function halfUp(top: bigint, bottom: bigint): bigint {
  const whole = top / bottom;
  return 2n * (top - whole * bottom) >= bottom ? whole + 1n : whole;
}

describe('prices', () => {
  it('are exact to the nano-dollar, rounded once, half up', () => {
    const money = fc.integer({ min: 0, max: 200_000_000 }).map((micro) => micro / 1_000_000);
    const count = fc.integer({ min: 0, max: 2_000_000 });
    fc.assert(
      fc.property(fc.tuple(money, money, money, money, money, money), fc.tuple(count, count, count, count, count), money, (prices, counts, factor) => {
        const [input, output, cached, write, reasoning, request] = prices;
        const [plain, fromCache, toCache, said, thought] = counts;
        const pricing = {
          input_per_million: input,
          output_per_million: output,
          cached_input_per_million: cached,
          cache_write_per_million: write,
          reasoning_per_million: reasoning,
          per_request: request,
          bands: [{ hours: '00:00-24:00', multiply: factor }],
        };
        const used = { input: plain + fromCache + toCache, cached: fromCache, cacheWrite: toCache, output: said + thought, reasoning: thought };
        const classes: [number, number][] = [
          [plain, input],
          [fromCache, cached],
          [toCache, write],
          [said, output],
          [thought, reasoning],
        ];
        // Everything over one denominator: 10^6 decimals of prices, of the factor, and tokens per million.
        const scale = 10n ** 6n;
        const scaled = (value: number): bigint => {
          const { top, bottom } = toFraction(value);
          return (top * scale) / bottom;
        };
        const sum = classes.reduce((total, [amount, perMillion]) => total + BigInt(amount) * scaled(perMillion), 0n) * scaled(factor);
        const expected = halfUp((sum + scaled(request) * scale * 10n ** 6n) * 10n ** 9n, scale * scale * 10n ** 6n);
        assert.equal(price(pricing, { tokens: used }), Number(expected));
      }),
      { numRuns: 300 },
    );
  });
  it('round a half up and less than a half down', () => {
    // 0.0005 dollars per million are half a nano-dollar a token.
    assert.equal(price({ ...base, input_per_million: 0.0005 }, { tokens: tokens({ input: 1 }) }), 1);
    assert.equal(price({ ...base, input_per_million: 0.0004 }, { tokens: tokens({ input: 1 }) }), 0);
    assert.equal(price({ ...base, input_per_million: 0.0005 }, { tokens: tokens({ input: 3 }) }), 2);
  });
  it('cost cached tokens and cache writes as input where they have no price of their own', () => {
    const used = { tokens: tokens({ input: 1000, cached: 600, cacheWrite: 300 }) };
    assert.equal(price(base, used), 150_000);
    assert.equal(price({ ...base, cached_input_per_million: 0.075 }, used), 15_000 + 45_000 + 45_000);
    assert.equal(price({ ...base, cached_input_per_million: 0, cache_write_per_million: 1 }, used), 15_000 + 300_000);
  });
  it('replace the output price for reasoning tokens', () => {
    const used = { tokens: tokens({ output: 1000, reasoning: 400 }) };
    assert.equal(price(base, used), 600_000);
    assert.equal(price({ ...base, reasoning_per_million: 1.2 }, used), 360_000 + 480_000);
  });
  it('count a request only where an answer began, tokens always', () => {
    const dear = { ...base, per_request: 0.01, bands: [{ hours: '00:00-24:00', multiply: 2 }] };
    assert.equal(price(dear, { tokens: tokens({ input: 1000 }), answered: true }), 300_000 + 10_000_000, 'bands do not multiply it');
    assert.equal(price(dear, { tokens: tokens({ input: 1000 }), answered: false }), 300_000);
    assert.equal(price(dear, { tokens: NO_TOKENS, answered: false }), 0);
  });
  it('change with a date: the newest begun holds, by the day of cost.timezone', () => {
    const list = [
      { ...base, input_per_million: 2, from: '2026-12-01' },
      { ...base, input_per_million: 1, from: '2026-06-01T00:00:00Z' },
    ];
    const at = (text: string): number | undefined => priceCall(config, list, makeCall({ startedAt: Date.parse(text), tokens: tokens({ input: 1_000_000 }) }));
    assert.equal(at('2026-11-30T23:59:59.999+08:00'), 1_000_000_000);
    assert.equal(at('2026-12-01T00:00:00+08:00'), 2_000_000_000);
    assert.equal(at('2026-06-01T00:00:00Z'), 1_000_000_000);
    assert.equal(at('2026-05-31T23:59:59Z'), undefined, 'before the first: unknown, not free');
  });
  it('multiply by the band in which the call began', () => {
    const banded = { ...base, input_per_million: 1, bands: [{ days: 'mon-fri', hours: '22:00-04:00', timezone: 'UTC', multiply: 2 }] };
    const at = (text: string): number | undefined => price(banded, { startedAt: Date.parse(text), tokens: tokens({ input: 1_000_000 }) });
    assert.equal(at('2026-11-30T22:00:00Z'), 2e9);
    assert.equal(at('2026-12-01T03:59:59Z'), 2e9);
    assert.equal(at('2026-12-01T04:00:00Z'), 1e9);
    assert.equal(at('2026-11-30T03:00:00Z'), 1e9, "Sunday's night");
  });
});

describe('whose prices', () => {
  const models = [
    { id: 'cheap', provider: 'simulator', pricing: { input_per_million: 1, output_per_million: 1 } },
    { id: 'free', provider: 'simulator', pricing: { input_per_million: 0, output_per_million: 0 } },
    { id: 'unknown', provider: 'simulator' },
    {
      id: 'pool',
      pricing: { input_per_million: 99, output_per_million: 99 },
      failover: {
        upstreams: [
          { target: 'cheap' },
          { target: 'unknown' },
          { target: 'simulator', model_name: 'own', pricing: { input_per_million: 5, output_per_million: 5 } },
        ],
      },
    },
  ];
  const priced = makeConfig({ models, cost: { unpriced: 'refuse' } });
  const room = createAccountingRoom();
  const million = (model: string, upstream: string): number | undefined =>
    room.price(priced, makeCall({ model, upstream, tokens: tokens({ input: 1_000_000 }) }));

  it("are the entry's own, else those of the model that the target is; never those of the model that lists it", () => {
    assert.equal(million('pool', 'cheap'), 1e9);
    assert.equal(million('pool', 'simulator/own'), 5e9);
    assert.equal(million('pool', 'unknown'), undefined);
    assert.equal(million('gone', 'gone'), undefined);
  });
  it('tell unknown from free', () => {
    assert.equal(million('free', 'free'), 0);
    assert.equal(million('unknown', 'unknown'), undefined);
  });
  it('refuse a call without a price before it is made, when the configuration says so', () => {
    const attempt = (model: string) => ({ model, upstream: priced.registry.models.get(model)?.upstreams[0] ?? assert.fail(model) });
    room.checkPriced(priced, attempt('free'));
    assert.throws(
      () => room.checkPriced(priced, attempt('unknown')),
      (thrown) => thrown instanceof HermesError && thrown.code === 'model_unpriced',
    );
    room.checkPriced(makeConfig({ models }), attempt('unknown'));
    assert.equal(pricingOf(priced, attempt('unknown').upstream).length, 0);
  });
  it('are filled in before the listeners hear', () => {
    const heard: (number | undefined)[] = [];
    room.onCall(({ costNanoUsd }) => heard.push(costNanoUsd));
    room.record(makeCall({ model: 'cheap', upstream: 'cheap', tokens: tokens({ output: 10 }) }), priced);
    assert.deepEqual(heard, [10_000]);
  });
});

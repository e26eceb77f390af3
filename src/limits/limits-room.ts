import { HermesError } from '../contracts/errors.ts';
import type { Exchange, ModelCall, Reservation } from '../contracts/exchange.ts';
import type { LimitsRoom } from '../contracts/rooms.ts';
import type { Environment, Metrics } from '../contracts/telemetry.ts';
import { toDuration } from '../wire/duration.ts';
import type { BucketState, BucketStore, Taken } from './bucket.ts';
import { bucketsOf, type RuleBucket } from './rule-buckets.ts';

export interface LimitsDeps {
  buckets: BucketStore;
  metrics: Metrics;
  environment: Environment;
}

/** Token buckets: reserved together or not at all, settled when the answer is over. */
export function createLimitsRoom({ buckets, metrics, environment }: LimitsDeps): LimitsRoom {
  const refusals = metrics.counter('hermes_rate_limited_total', 'Requests refused by a limit.', ['limit', 'service']);
  const shown = new WeakMap<Exchange, Record<string, string>>();

  const admit = (exchange: Exchange, wanted: readonly RuleBucket[], taken: Taken): Reservation => {
    const headers = toHeaders(wanted, taken.states);
    if (taken.refused === undefined) {
      shown.set(exchange, headers);
      return createReservation(wanted, buckets, environment);
    }
    const { index, retryAfterMs } = taken.refused;
    const name = wanted[index]?.name ?? '';
    refusals.inc({ limit: name, service: exchange.caller?.service ?? '' });
    const waitMs = Math.ceil(retryAfterMs);
    throw new HermesError('rate_limit_exceeded', `The limit ${name} is reached; try again in ${toDuration(waitMs)}.`, {
      headers: { ...headers, 'x-hermes-limit': name, 'retry-after': String(Math.ceil(waitMs / 1000)), 'retry-after-ms': String(waitMs) },
    });
  };

  return {
    reserve(exchange) {
      if (exchange.config.limits.length === 0) return undefined;
      const wanted = bucketsOf(exchange);
      if (wanted.length === 0) return undefined;
      const taken = buckets.take(
        wanted.map(({ demand }) => demand),
        environment.now(),
      );
      return taken instanceof Promise ? taken.then((result) => admit(exchange, wanted, result)) : admit(exchange, wanted, taken);
    },
    headers: (exchange) => shown.get(exchange) ?? {},
  };
}

function createReservation(wanted: readonly RuleBucket[], buckets: BucketStore, environment: Environment): Reservation {
  const tokenDemands = wanted.filter(({ unit }) => unit === 'tokens').map(({ demand }) => demand);
  let reserved = tokenDemands[0]?.amount ?? 0;
  let settled = false;
  let toppedUp = false;
  const adjust = (units: number): void => {
    if (units !== 0) for (const demand of tokenDemands) void Promise.resolve(buckets.adjust(demand, units, environment.now())).catch(() => undefined);
  };
  return {
    topUp(tokens) {
      if (settled || toppedUp || tokens <= 0) return;
      toppedUp = true;
      reserved += tokens;
      adjust(-tokens);
    },
    settle(calls: readonly ModelCall[]) {
      if (settled) return;
      settled = true;
      const used = calls.reduce((sum, { tokens }) => sum + tokens.input + tokens.output, 0);
      adjust(reserved - used);
    },
  };
}

/** The tightest bucket of each unit, in OpenAI's header names. */
function toHeaders(wanted: readonly RuleBucket[], states: readonly BucketState[]): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const unit of ['requests', 'tokens'] as const) {
    let tightest: BucketState | undefined;
    for (const [index, bucket] of wanted.entries()) {
      const state = states[index];
      if (bucket.unit === unit && state && (tightest === undefined || state.remaining < tightest.remaining)) tightest = state;
    }
    if (tightest === undefined) continue;
    headers[`x-ratelimit-limit-${unit}`] = String(Math.floor(tightest.capacity));
    headers[`x-ratelimit-remaining-${unit}`] = String(Math.max(0, Math.floor(tightest.remaining + 1e-9)));
    headers[`x-ratelimit-reset-${unit}`] = toDuration(Math.ceil(tightest.resetMs));
  }
  return headers;
}

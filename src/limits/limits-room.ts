import type { Config } from '../contracts/config.ts';
import { HermesError } from '../contracts/errors.ts';
import type { Exchange, ModelCall, Reservation } from '../contracts/exchange.ts';
import type { LimitsRoom } from '../contracts/rooms.ts';
import type { Metrics } from '../contracts/telemetry.ts';
import { toDuration } from '../wire/duration.ts';
import type { BucketState, BucketStore, Taken } from './bucket.ts';
import { bucketsOf, type RuleBucket } from './rule-buckets.ts';

export interface LimitsDeps {
  buckets: BucketStore;
  metrics: Metrics;
  /** A label value for the service: one that the configuration does not name is `other`. */
  serviceLabel(config: Config, service: string | undefined): string;
}

/** Token buckets: reserved together or not at all, settled when the answer is over. */
export function createLimitsRoom({ buckets, metrics, serviceLabel }: LimitsDeps): LimitsRoom {
  const refusals = metrics.counter('hermes_rate_limited_total', 'Requests refused by a limit.', ['limit', 'service']);
  // By what forks share: the request runs in one of idempotency's, its head is written outside.
  const shown = new WeakMap<Exchange['inbound'], Record<string, string>>();

  const admit = (exchange: Exchange, wanted: readonly RuleBucket[], taken: Taken): Reservation => {
    const headers = toHeaders(wanted, taken);
    if (taken.refused === undefined) {
      shown.set(exchange.inbound, headers);
      return createReservation(wanted, taken.from);
    }
    const { index, retryAfterMs } = taken.refused;
    const name = wanted[index]?.name ?? '';
    refusals.inc({ limit: name, service: serviceLabel(exchange.config, exchange.caller?.service) });
    throw new HermesError('rate_limit_exceeded', `The limit ${name} is reached; try again in ${toDuration(retryAfterMs)}.`, {
      headers: { ...headers, 'x-hermes-limit': name, 'retry-after': String(Math.ceil(retryAfterMs / 1000)), 'retry-after-ms': String(retryAfterMs) },
    });
  };

  return {
    reserve(exchange) {
      if (exchange.config.limits.length === 0) return undefined;
      const wanted = bucketsOf(exchange);
      if (wanted.length === 0) return undefined;
      const taken = buckets.take(wanted.map(({ demand }) => demand));
      return taken instanceof Promise ? taken.then((result) => admit(exchange, wanted, result)) : admit(exchange, wanted, taken);
    },
    headers: (exchange) => shown.get(exchange.inbound) ?? {},
  };
}

function createReservation(wanted: readonly RuleBucket[], buckets: BucketStore): Reservation {
  const demands = wanted.filter(({ unit }) => unit === 'tokens').map(({ demand }) => demand);
  let reserved = demands[0]?.amount ?? 0;
  let settled = false;
  let toppedUp = false;
  const adjust = (units: number): void => {
    if (units !== 0 && demands.length > 0) buckets.adjust(demands, units);
  };
  return {
    topUp(tokens) {
      if (settled || toppedUp || tokens <= 0) return;
      toppedUp = true;
      const whole = Math.ceil(tokens);
      reserved += whole;
      adjust(-whole);
    },
    settle(calls: readonly ModelCall[]) {
      if (settled) return;
      settled = true;
      const used = calls.reduce((sum, { tokens }) => sum + tokens.input + tokens.output, 0);
      adjust(reserved - Math.ceil(used));
    },
  };
}

/** The bucket that refuses, else the tightest of each unit, in OpenAI's header names. */
function toHeaders(wanted: readonly RuleBucket[], taken: Taken): Record<string, string> {
  const headers: Record<string, string> = {};
  const requests = tightest('requests', wanted, taken);
  if (requests !== undefined) {
    headers['x-ratelimit-limit-requests'] = requests.limit;
    headers['x-ratelimit-remaining-requests'] = remainingOf(requests.state);
    headers['x-ratelimit-reset-requests'] = toDuration(requests.state.resetMs);
  }
  const tokens = tightest('tokens', wanted, taken);
  if (tokens !== undefined) {
    headers['x-ratelimit-limit-tokens'] = tokens.limit;
    headers['x-ratelimit-remaining-tokens'] = remainingOf(tokens.state);
    headers['x-ratelimit-reset-tokens'] = toDuration(tokens.state.resetMs);
  }
  return headers;
}

function tightest(unit: RuleBucket['unit'], wanted: readonly RuleBucket[], { refused, states }: Taken): { limit: string; state: BucketState } | undefined {
  let shown: { limit: string; state: BucketState } | undefined;
  for (const [index, bucket] of wanted.entries()) {
    const state = states[index];
    if (state === undefined || bucket.unit !== unit) continue;
    const first = refused?.index === index;
    if (first || shown === undefined || state.remaining < shown.state.remaining) shown = { limit: bucket.limit, state };
    if (first) break;
  }
  return shown;
}

function remainingOf({ remaining }: BucketState): string {
  return String(Math.max(0, Math.floor(remaining)));
}

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Config } from '../../src/contracts/config.ts';
import { HermesError } from '../../src/contracts/errors.ts';
import type { Ask, Caller, Exchange, Principal } from '../../src/contracts/exchange.ts';
import { createLimitsRoom } from '../../src/limits/limits-room.ts';
import { createMemoryBuckets } from '../../src/limits/memory-buckets.ts';
import { bucketsOf } from '../../src/limits/rule-buckets.ts';
import type { ChatRequest } from '../../src/wire/chat.ts';
import { makeCall, NO_TOKENS, noMetrics } from '../accounting/accounting-kit.ts';
import { makeConfig } from '../config/make-config.ts';

interface Asked {
  limits: object[];
  caller?: Partial<Caller>;
  ask?: Ask;
  key?: string;
  request?: Partial<ChatRequest>;
  bytes?: Uint8Array | undefined;
}
const models = [
  { id: 'fast_model', provider: 'simulator', max_tokens: 100 },
  { id: 'long', provider: 'simulator', max_tokens: 5000 },
  { id: 'unbounded', provider: 'simulator' },
];
const configs = new Map<string, Config>();
function exchangeOf({ limits, caller, ask = {}, key = 'k1', request = {}, ...given }: Asked): Exchange {
  const text = JSON.stringify(limits);
  const config = configs.get(text) ?? makeConfig({ models, limits });
  configs.set(text, config);
  const whole: ChatRequest = { model: 'auto', messages: [{ role: 'user', content: 'hello' }], ...request };
  const principal: Principal = {
    id: key,
    service: 's',
    services: [],
    project: 'p',
    projects: [],
    admin: false,
    models: ['*'],
    tools: [],
    userLevels: [],
    priorities: [],
    passthrough: [],
  };
  const made: Pick<Exchange, 'config' | 'ask' | 'request' | 'inbound' | 'principal' | 'caller'> = {
    config,
    ask,
    request: whole,
    inbound: { form: 'openai-chat', method: 'POST', path: '/', bytes: 'bytes' in given ? given.bytes : new Uint8Array(1), request: whole, remoteAddress: '' },
    principal,
    caller: { service: 'support', project: 'shop', user: undefined, userLevel: undefined, priority: 'normal', ...caller },
  };
  // Limits look at no more of an exchange than this.
  return made as Exchange;
}
function openRoom() {
  const clock = { at: 0, now: () => clock.at };
  const refused: Record<string, string>[] = [];
  const metrics = { ...noMetrics, counter: () => ({ inc: (labels: Record<string, string>) => void refused.push(labels) }) };
  const room = createLimitsRoom({ buckets: createMemoryBuckets(clock), metrics, serviceLabel: (_config, service) => service ?? '' });
  const reserve = (asked: Asked) => {
    const exchange = exchangeOf(asked);
    const held = room.reserve(exchange);
    assert.ok(!(held instanceof Promise));
    return { held, headers: room.headers(exchange) };
  };
  const refusal = (asked: Asked): HermesError => {
    try {
      reserve(asked);
    } catch (thrown) {
      assert.ok(thrown instanceof HermesError && thrown.code === 'rate_limit_exceeded');
      return thrown;
    }
    return assert.fail('it was admitted');
  };
  return { clock, refused, reserve, refusal };
}
const used = (tokens: number) => [makeCall({ tokens: { ...NO_TOKENS, input: tokens } })];

describe('limits', () => {
  it('concern nobody where there are none', () => {
    const { reserve } = openRoom();
    assert.deepEqual(reserve({ limits: [] }), { held: undefined, headers: {} });
    assert.equal(reserve({ limits: [{ per: 'session', requests_per_minute: 1 }] }).held, undefined, 'a request without a session');
  });
  it('say what is left, and refuse with the name of the limit and the time to wait', () => {
    const { clock, reserve, refusal, refused } = openRoom();
    const limits = [{ per: 'user', requests_per_minute: 60, burst: 2 }];
    assert.deepEqual(reserve({ limits }).headers, {
      'x-ratelimit-limit-requests': '2',
      'x-ratelimit-remaining-requests': '1',
      'x-ratelimit-reset-requests': '1s',
    });
    reserve({ limits });
    clock.at = 250;
    const error = refusal({ limits });
    assert.equal(error.status, 429);
    assert.deepEqual(error.headers, {
      'x-ratelimit-limit-requests': '2',
      'x-ratelimit-remaining-requests': '0',
      'x-ratelimit-reset-requests': '2s',
      'x-hermes-limit': 'user_requests_per_minute',
      'retry-after': '1',
      'retry-after-ms': '750',
    });
    assert.deepEqual(refused, [{ limit: 'user_requests_per_minute', service: 'support' }]);
    clock.at = 1000;
    reserve({ limits });
  });
  it('that refuse have used up nothing of another', () => {
    const { reserve, refusal } = openRoom();
    const limits = [
      { per: 'service', requests_per_minute: 100 },
      { per: 'user', requests_per_minute: 1 },
      { per: 'key', tokens_per_minute: 10_000 },
    ];
    reserve({ limits, caller: { user: 'a' } });
    for (let i = 0; i < 5; i++) {
      const { headers } = refusal({ limits, caller: { user: 'a' } });
      assert.equal(headers['x-hermes-limit'], 'user_requests_per_minute');
      assert.equal(headers['x-ratelimit-limit-requests'], '1', 'the bucket that refuses is shown');
    }
    const { headers } = reserve({ limits, caller: { user: 'b' } });
    assert.equal(headers['x-ratelimit-remaining-requests'], '0', "b's own bucket");
    const service = [limits[0] ?? {}];
    assert.equal(reserve({ limits: service }).headers['x-ratelimit-remaining-requests'], '97');
  });
  it('hold a bucket for each distinct value, users and sessions within their project, the key for a user who is not named', () => {
    const keyOf = (per: string, asked: Partial<Asked> = {}): string | undefined =>
      bucketsOf(exchangeOf({ limits: [{ per, requests_per_minute: 1 }], ...asked }))[0]?.demand.key;
    const keys = [
      keyOf('user', { caller: { user: 'a' } }),
      keyOf('user', { caller: { user: 'a', project: 'lab' } }),
      keyOf('user', { caller: { user: 'a/b:c' } }),
      keyOf('user', { caller: { project: 'shop/user', user: 'a' } }),
      keyOf('user'),
      keyOf('user', { key: 'k2' }),
      keyOf('user', { caller: { user: 'k1' } }),
      keyOf('session', { ask: { sessionId: 'a' } }),
      keyOf('session', { ask: { sessionId: 'a' }, caller: { project: 'lab' } }),
      keyOf('service'),
      keyOf('service', { caller: { service: 'kb' } }),
      keyOf('project'),
      keyOf('key'),
    ];
    assert.equal(new Set(keys).size, keys.length, keys.join('\n'));
    assert.equal(keyOf('service', { caller: { user: 'x' } }), keyOf('service', { key: 'k9' }));
  });
  it('match by the caller, each rule with a bucket of its own', () => {
    const limits = [
      { per: 'service', requests_per_minute: 5 },
      { per: 'service', match: { service_type: 'kb' }, requests_per_minute: 2 },
      { per: 'service', match: { user_level: ['free', 'trial'], priority: 'normal' }, requests_per_minute: 3 },
      { per: 'service', requests_per_minute: 500, burst: 50 },
    ];
    const capacities = (asked: Partial<Asked> = {}): number[] => bucketsOf(exchangeOf({ limits, ...asked })).map(({ demand }) => demand.capacity);
    assert.deepEqual(capacities(), [5, 50]);
    assert.deepEqual(capacities({ caller: { service: 'kb' } }), [5, 2, 50]);
    assert.deepEqual(capacities({ caller: { userLevel: 'trial' } }), [5, 3, 50]);
    assert.deepEqual(capacities({ caller: { userLevel: 'trial', priority: 'urgent' } }), [5, 50]);
    const keys = bucketsOf(exchangeOf({ limits, caller: { service: 'kb' } })).map(({ demand }) => demand.key);
    assert.equal(new Set(keys).size, 3);
  });
});

describe('token limits', () => {
  const limits = [{ per: 'key', tokens_per_minute: 60_000 }];
  const amount = (asked: Partial<Asked>): number => bucketsOf(exchangeOf({ limits, ...asked }))[0]?.demand.amount ?? -1;
  const hello = amount({ request: { max_tokens: 1 } }) - 1;

  it('reserve what the request carries and the answer that it may get', () => {
    assert.ok(hello >= 2 && hello < 10, `${hello} tokens for hello`);
    assert.equal(amount({ request: { max_tokens: 50 } }), hello + 50);
    assert.equal(amount({ request: { max_completion_tokens: 50, n: 3 } }), hello + 150);
    assert.equal(amount({}), hello + 100, "the default model's own");
    assert.equal(amount({ request: { model: 'long' } }), hello + 5000);
    assert.equal(amount({ ask: { preferModel: 'long' }, request: { max_tokens: 9000 } }), hello + 5000, 'no model answers beyond its ceiling');
    assert.equal(amount({ request: { model: 'unbounded' } }), hello + 1024, 'nobody bounds it');
  });
  it('stay counts whatever is asked for: a debt that no answer can pay back would lock others out', () => {
    for (const [request, most] of [
      [{ model: 'fast_model', max_tokens: 1e308, n: 100 }, 100 * 100],
      [{ model: 'unbounded', max_tokens: Number.MAX_SAFE_INTEGER, n: 128 }, 128 * 10_000_000],
      [{ max_tokens: 1e308, n: 1e308 }, 128 * 10_000_000],
      [{ max_tokens: Number.NaN }, 1024],
    ] as const) {
      const reserved = amount({ request });
      assert.ok(Number.isSafeInteger(reserved * 60_000) && reserved <= hello + most, `${reserved} for ${JSON.stringify(request)}`);
    }
    const buckets = createMemoryBuckets({ now: () => 0 });
    for (const endless of [Number.NaN, Number.POSITIVE_INFINITY])
      assert.throws(() => buckets.take([{ key: 'k', amount: endless, capacity: 5, perMinute: 5 }]), RangeError);
  });
  it('count text, not its wrapping: an image in base64 is an image', () => {
    const image = { role: 'user' as const, content: [{ type: 'image_url' as const, image_url: { url: `data:image/png;base64,${'A'.repeat(1_000_000)}` } }] };
    assert.ok(amount({ request: { messages: [image] } }) < 2000);
    assert.equal(amount({ request: { messages: [{ role: 'user', content: 'x'.repeat(4000) }], max_tokens: 1 } }), 1000 + 4 + 1);
    assert.equal(amount({ bytes: undefined, request: { messages: [] } }), 0, 'a body that is not read reserves nothing');
  });
  it('are settled at the end, topped up with the history as a debt, each once', () => {
    const { reserve } = openRoom();
    const left = (): number => Number(reserve({ limits, request: { max_tokens: 1, messages: [] } }).headers['x-ratelimit-remaining-tokens']);
    const { held } = reserve({ limits, request: { max_tokens: 1000 } });
    assert.ok(held);
    held.topUp(500);
    held.topUp(500);
    assert.equal(left(), 60_000 - hello - 1500 - 1);
    held.settle(used(200));
    held.settle(used(9999));
    held.topUp(9999);
    assert.equal(left(), 60_000 - 200 - 2);
  });
  it('give everything back when nothing was used, and take more than was reserved', () => {
    const { reserve, refusal } = openRoom();
    const small = [{ per: 'key', tokens_per_minute: 600 }];
    const ask = { limits: small, request: { max_tokens: 100, messages: [] } };
    reserve(ask).held?.settle([]);
    assert.equal(reserve(ask).headers['x-ratelimit-remaining-tokens'], '500');
    reserve(ask).held?.settle(used(1600));
    const { headers } = refusal(ask);
    assert.equal(headers['x-hermes-limit'], 'key_tokens_per_minute');
    assert.equal(headers['x-ratelimit-remaining-tokens'], '0');
    assert.equal(headers['retry-after'], '120', '600 - 100 - 1600 = -1100 to 100, at ten a second');
  });
});

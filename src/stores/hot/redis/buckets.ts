import type { BucketDemand, BucketLevels, HotStore } from '../../../contracts/hot-store.ts';
import type { Client } from './connection.ts';
import { define } from './scripts.ts';

/** A level is `grains at`: 60,000ths of a unit, and when that was. A bucket that would be full is not there. */
const LEVELS = `
local at = tonumber(ARGV[1])
if not at then
  local time = redis.call('TIME')
  at = time[1] * 1000 + math.floor(time[2] / 1000)
end
local kept = redis.call('MGET', unpack(KEYS))
local levels, times = {}, {}
for i = 1, #KEYS do
  local capacity, rate = tonumber(ARGV[3 * i]) * 60000, tonumber(ARGV[3 * i + 1])
  levels[i], times[i] = capacity, at
  if kept[i] then
    local grains, since = string.match(kept[i], '^(%S+) (%S+)$')
    grains, since = tonumber(grains), tonumber(since)
    levels[i] = math.min(capacity, grains + math.max(0, at - since) * rate)
    times[i] = math.max(at, since)
  end
end
local function keep(i, grains)
  local capacity, rate = tonumber(ARGV[3 * i]) * 60000, tonumber(ARGV[3 * i + 1])
  levels[i] = grains
  redis.call('SET', KEYS[i], string.format('%.0f %.0f', grains, times[i]), 'PX', string.format('%.0f', math.ceil((capacity - grains) / rate) + 60000))
end
`;
/** ARGV: time or '', then amount, capacity and rate of each key. The first that does not fit, or 0, then all levels. */
const TAKE = define(`${LEVELS}
local refused = 0
for i = 1, #KEYS do
  if levels[i] < math.min(tonumber(ARGV[3 * i - 1]), tonumber(ARGV[3 * i])) * 60000 then refused = i break end
end
if refused == 0 then
  for i = 1, #KEYS do keep(i, levels[i] - tonumber(ARGV[3 * i - 1]) * 60000) end
end
local reply = { refused }
for i = 1, #KEYS do reply[i + 1] = string.format('%.0f', levels[i]) end
return reply
`);
/** ARGV: the same, where an amount is what is given back. */
const ADJUST = define(`${LEVELS}
for i = 1, #KEYS do
  keep(i, math.min(tonumber(ARGV[3 * i]) * 60000, levels[i] + tonumber(ARGV[3 * i - 1]) * 60000))
end
return 1
`);

export type RedisBuckets = Required<Pick<HotStore, 'takeFromBuckets' | 'adjustBuckets'>>;

/**
 * Token buckets in one Lua call a request, by the server's clock. Scripts of a Cluster may only touch keys of one slot, so all
 * buckets have one hash tag: one node counts.
 */
export function createBuckets(keyPrefix: string, ask: <T>(command: (client: Client) => Promise<T>) => Promise<T>): RedisBuckets {
  const run = (script: typeof TAKE, demands: readonly BucketDemand[], amountOf: (demand: BucketDemand) => number, at: number | undefined): Promise<unknown> => {
    const keys = demands.map(({ key }) => `${keyPrefix}{limits}:${key}`);
    const args = demands.flatMap((demand) => [amountOf(demand), demand.capacity, demand.perMinute]);
    return ask(async (client) => {
      try {
        return await client.evalsha(script.sha, keys.length, ...keys, at ?? '', ...args);
      } catch (error) {
        if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
        return client.eval(script.text, keys.length, ...keys, at ?? '', ...args);
      }
    });
  };
  return {
    async takeFromBuckets(demands, at): Promise<BucketLevels> {
      const reply = await run(TAKE, demands, ({ amount }) => amount, at);
      const [refused = 0, ...levels] = Array.isArray(reply) ? reply.map(Number) : [];
      return { refused: refused > 0 ? refused - 1 : undefined, levels };
    },
    async adjustBuckets(demands, units, at) {
      await run(ADJUST, demands, () => units, at);
    },
  };
}

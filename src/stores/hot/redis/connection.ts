import type { Cluster, Redis, RedisOptions } from 'ioredis';

export type Client = Redis | Cluster;
type Options = Omit<RedisOptions, 'replyMapping'>;

/** What the address says, for one server, several (Cluster), or sentinels that know where the master is. */
export type Address =
  | { kind: 'single'; options: Options }
  | { kind: 'cluster'; nodes: { host: string; port: number }[]; options: Options }
  | { kind: 'sentinel'; options: Options };

/** Throws without the address in its message: it may hold a password. */
export function parseRedisUrl(url: string): Address {
  const scheme = /^([a-z+]+):\/\//.exec(url)?.[1] ?? '';
  if (!['redis', 'rediss', 'redis+sentinel', 'rediss+sentinel'].includes(scheme)) {
    throw new Error('REDIS_URL begins with redis://, rediss:// or redis+sentinel://; several nodes of a Cluster are joined by commas');
  }
  // Credentials stand before the first host, the path behind the last; a node may repeat the scheme.
  const parts = url
    .replace(/^[a-z+]+:\/\//, '')
    .split(',')
    .map((part) => part.replace(/^[a-z+]+:\/\//, ''));
  const nodes = parts.filter((part) => URL.canParse(`redis://${part}`)).map((part) => new URL(`redis://${part}`));
  const [first, last] = [nodes[0], nodes.at(-1)];
  if (first === undefined || last === undefined || nodes.length < parts.length || first.hostname === '')
    throw new Error('REDIS_URL names no host that can be read');
  const defaultPort = scheme.endsWith('sentinel') ? 26379 : 6379;
  const places = nodes.map((node) => ({ host: node.hostname.replace(/^\[|\]$/g, ''), port: Number(node.port || defaultPort) }));
  const common: Options = {
    ...(first.username === '' ? {} : { username: decodeURIComponent(first.username) }),
    ...(first.password === '' ? {} : { password: decodeURIComponent(first.password) }),
    ...(scheme.startsWith('rediss') ? { tls: {} } : {}),
  };
  const path = last.pathname;
  const [, name = '', database = ''] = path.split('/');
  const sentinelTls = common.tls === undefined ? {} : { sentinelTLS: {}, enableTLSForSentinelMode: true };
  if (scheme.endsWith('sentinel'))
    return { kind: 'sentinel', options: { ...common, ...sentinelTls, sentinels: places, name: name || 'mymaster', db: Number(database) || 0 } };
  if (places.length > 1) return { kind: 'cluster', nodes: places, options: common };
  return { kind: 'single', options: { ...common, ...places[0], db: Number(name) || 0 } };
}

const CONNECT_MS = 1_000;
const LONGEST_PAUSE_MS = 500;
const pause = (times: number): number => Math.min(times * 50, LONGEST_PAUSE_MS);

/** Nothing waits for a connection, and nothing is sent twice: a write that comes late is a write that comes wrong. */
const RELIABLE: Options = {
  lazyConnect: true,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  connectTimeout: CONNECT_MS,
  keepAlive: 10_000,
  connectionName: 'hermes',
  protocol: 2,
  retryStrategy: pause,
  sentinelRetryStrategy: pause,
  // After a failover the old master still answers: ask again where the master is.
  reconnectOnError: (error) => error.message.startsWith('READONLY'),
};

/** Names that nodes are known by are left as they are: their certificates were made for these. */
function asAnnounced(address: string, found: (error: null, address: string) => void): void {
  found(null, address);
}

/** Commands that are given together (requests go in step) go out in one write. Of a Cluster each node has its own connection: there they go one by one. */
export function gatherWrites(client: Client): void {
  const stream = 'stream' in client ? client.stream : undefined;
  if (stream === undefined || stream.writableCorked > 0) return;
  stream.cork();
  process.nextTick(() => stream.uncork());
}

/** The client library is only loaded where there is a Redis to talk to. */
export async function createClient(address: Address): Promise<Client> {
  const { Cluster, Redis } = await import('ioredis');
  if (address.kind !== 'cluster') return new Redis({ ...RELIABLE, ...address.options });
  const { retryStrategy: _, enableOfflineQueue: __, ...shared } = { ...RELIABLE, ...address.options };
  const own = { lazyConnect: true, enableOfflineQueue: false, clusterRetryStrategy: pause, slotsRefreshTimeout: CONNECT_MS, dnsLookup: asAnnounced };
  return new Cluster(address.nodes, { ...own, redisOptions: shared });
}

import { setTimeout as sleep } from 'node:timers/promises';
import { type RedisService, startRedis, until } from '../services.ts';

const NAME = 'hermes';

/** A master, its replica, and a Sentinel that makes the one the other when it is away for 0.4 s. What was not replicated yet is lost then. */
export interface RedisPair {
  /** `redis+sentinel://…` */
  url: string;
  ports: readonly number[];
  master(): Promise<RedisService>;
  /** The master dies; resolves when the replica has taken over and the dead one is back as its replica. */
  failOver(): Promise<void>;
  /** Whatever has happened: one master, and the other one its replica. */
  settle(): Promise<void>;
  stop(): Promise<void>;
}

/** `host`: under which the servers know each other, and the clients them. */
export async function startRedisPair(host: string, reach: (port: number) => Promise<void>): Promise<RedisPair> {
  const options = ['--appendfsync', 'no', '--replica-announce-ip', host, '--repl-diskless-sync-delay', '0'];
  const [first, second] = await Promise.all([startRedis(options), startRedis(options)]);
  const both: readonly [RedisService, RedisService] = [first, second];
  await Promise.all(both.map(({ port }) => reach(port)));
  await second.command('REPLICAOF', host, String(first.port));
  const lines = [`sentinel monitor ${NAME} ${host} ${first.port} 1`, `sentinel down-after-milliseconds ${NAME} 400`, `sentinel failover-timeout ${NAME} 3000`];
  const sentinel = await startRedis([], { sentinel: `${lines.join('\n')}\n` });
  await reach(sentinel.port);
  const masterPort = async (): Promise<number> =>
    Number(/\$\d+\r\n(\d+)\r\n$/.exec(await sentinel.command('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME))?.[1] ?? Number.NaN);
  const roleOf = async (service: RedisService): Promise<string> => /role:(\w+)/.exec(await service.command('INFO', 'replication').catch(() => ''))?.[1] ?? '';
  const master = async (): Promise<RedisService> => {
    const port = await masterPort();
    return both.find((service) => service.port === port) ?? first;
  };
  const settled = async (): Promise<boolean> => {
    const chosen = await master();
    if ((await roleOf(chosen)) !== 'master') return false;
    const other = chosen === first ? second : first;
    const state = await other.command('INFO', 'replication');
    const follows = state.includes(`master_port:${chosen.port}`);
    // One that was frozen while another was chosen takes itself for a master; an operator, or the Sentinel after a while, tells it.
    if (!follows) await other.command('REPLICAOF', host, String(chosen.port));
    return follows && state.includes('master_link_status:up') && (await sentinel.command('SENTINEL', 'CKQUORUM', NAME)).startsWith('+OK');
  };
  const settle = (): Promise<void> => until(settled, 'one master and its replica', 30_000);
  await settle();
  await until(
    async () => (await sentinel.command('SENTINEL', 'REPLICAS', NAME)).includes(String(second.port)),
    'the Sentinel does not know the replica',
    20_000,
  );
  return {
    url: `redis+sentinel://${host}:${sentinel.port}/${NAME}`,
    ports: [first.port, second.port, sentinel.port],
    master,
    settle,
    async failOver() {
      const old = await master();
      await old.kill();
      await until(async () => (await masterPort()) !== old.port, 'the Sentinel did not choose another master', 20_000);
      await old.start();
      await sleep(100);
      await settle();
    },
    async stop() {
      await Promise.all([sentinel.stop(), first.stop(), second.stop()]);
    },
  };
}

import { setTimeout as sleep } from 'node:timers/promises';
import type { Instance } from '../operations/instance.ts';
import type { Trouble, World } from './machine-world.ts';
import type { NamesMood } from './names.ts';
import type { Network, ServiceName } from './network.ts';
import type { Random } from './random.ts';

interface Fault {
  /** What it cannot be done without. */
  needs?: 'network' | 'clock';
  run(world: World): Promise<void>;
}

/** Remembers that something may get lost from here on, until it is over. */
async function during(world: World, trouble: Trouble, work: () => Promise<void>): Promise<void> {
  const entry = { from: performance.now(), to: Number.POSITIVE_INFINITY };
  world.trouble[trouble].push(entry);
  await work();
  entry.to = performance.now();
}
const pause = (world: World, least: number, more: number): Promise<void> => sleep(least + world.random.below(more));

async function end(world: World, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
  const index = world.random.below(2);
  const old = world.instances[index] as Instance;
  old.kill(signal);
  const code = await old.exited;
  if (signal === 'SIGTERM' && code !== 0) world.report.wrong.push(`SIGTERM ended in ${code}: ${old.log().slice(-300)}`);
  await world.restart(index);
}

/**
 * One instance no longer hears one service; its own words may still arrive there. Half-open: the service ends every connection
 * meanwhile, so that the instance goes on with connections that only it has.
 */
function cutOff(service: ServiceName, halfOpen: boolean): Fault {
  return {
    needs: 'network',
    run: (world) =>
      during(world, service === 'postgres' ? 'store' : 'way', async () => {
        const [network, host] = [world.network as Network, world.random.below(2)];
        network.cut(host, service);
        if (halfOpen) {
          await sleep(50);
          network.dropConnections(service);
        }
        await pause(world, 300, halfOpen ? 1000 : 2200);
        network.mend(host, service);
      }),
  };
}
/** Every connection to the models is made anew, while names are looked up in this mood. */
function names(mood: (world: World) => NamesMood): Fault {
  return {
    needs: 'network',
    run: (world) =>
      during(world, 'way', async () => {
        const network = world.network as Network;
        network.names.mood = mood(world);
        network.dropConnections('models');
        await pause(world, 500, 1500);
        network.names.mood = 'well';
      }),
  };
}

export const FAULTS: Readonly<Record<string, Fault>> = {
  'kill -9 and start': { run: (world) => during(world, 'process', () => end(world, 'SIGKILL')) },
  'SIGTERM and start': { run: (world) => end(world, 'SIGTERM') },
  'stop and continue': {
    async run(world) {
      const instance = world.random.pick(world.instances);
      instance.kill('SIGSTOP');
      await pause(world, 300, 900);
      instance.kill('SIGCONT');
    },
  },
  'Redis killed': {
    async run(world) {
      const master = await world.redis.master();
      await master.kill();
      await pause(world, 100, 600);
      await master.start();
      await world.redis.settle();
    },
  },
  'Redis frozen': {
    async run(world) {
      const master = await world.redis.master();
      master.freeze();
      await pause(world, 300, 900);
      // Longer than the Sentinel waits: then there are two masters for a moment, and one of them forgets.
      master.thaw();
      await world.redis.settle();
    },
  },
  'Redis fails over': { run: (world) => world.redis.failOver() },
  'PostgreSQL killed': {
    run: (world) =>
      during(world, 'store', async () => {
        await world.postgres.kill();
        await sleep(200);
        await world.postgres.start();
      }),
  },
  'PostgreSQL restarted': { run: (world) => during(world, 'store', () => world.postgres.restart()) },
  'PostgreSQL frozen': {
    run: (world) =>
      during(world, 'store', async () => {
        world.postgres.freeze();
        await pause(world, 300, 500);
        world.postgres.thaw();
      }),
  },
  'clock steps': {
    needs: 'clock',
    async run(world) {
      // Both ways, up to two hours: beyond every lease, within what is kept for a day.
      world.clock?.step(world.random.below(14_400) - 7200);
      await sleep(1100);
    },
  },
  'cut off from Redis': cutOff('redis', false),
  'cut off from PostgreSQL': cutOff('postgres', false),
  'cut off from the models': cutOff('models', false),
  'cut off from the tools': cutOff('tools', false),
  'half-open to Redis': cutOff('redis', true),
  'half-open to PostgreSQL': cutOff('postgres', true),
  'half-open to the models': cutOff('models', true),
  unplugged: {
    needs: 'network',
    run: (world) =>
      during(world, 'way', async () => {
        const [network, host] = [world.network as Network, world.random.below(2)];
        network.unplug(host);
        await pause(world, 300, 1500);
        network.plug(host);
      }),
  },
  'slow names': names((world) => 500 + world.random.below(2000)),
  'no names': names(() => 'silent'),
  'names that fail': names(() => 'failing'),
};

/** So many faults of those that can be had here, each kind once before any comes twice, in an order of the seed's. */
export function planFaults(world: World, random: Random, count: number): string[] {
  const possible = Object.keys(FAULTS).filter((name) => {
    const needs = FAULTS[name]?.needs;
    return needs === undefined || (needs === 'network' ? world.network !== undefined : world.clock !== undefined);
  });
  const plan: string[] = [];
  while (plan.length < count) {
    const left = [...possible];
    while (left.length > 0) plan.push(...left.splice(random.below(left.length), 1));
  }
  return plan.slice(0, count);
}

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { KEY } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { type Instance, startInstance } from '../operations/instance.ts';
import { freePort, type PostgresService, startPostgres, temporaryFolder } from '../services.ts';
import { clockMissing, createClock, type SteppedClock } from './clock.ts';
import { MODELS_NAME } from './names.ts';
import { createNetwork, type Network, networkMissing, portOf } from './network.ts';
import { createRandom, type Random } from './random.ts';
import { type RedisPair, startRedisPair } from './redis-pair.ts';

export interface MachineReport {
  seed: number;
  faults: Record<string, number>;
  requests: number;
  acknowledged: number;
  failed: number;
  /** What clients saw; 0: no answer, or none to its end. */
  statuses: Record<string, number>;
  refunds: number;
  /** Refunds whose tool call failed or timed out, and the model was told so. */
  told: number;
  upstreamCalls: number;
  bookedCalls: number;
  /** Answered whole by the upstream, and those of them that a fault may have kept from hermes or its books. */
  answered: number;
  unsure: number;
  bookedAnswers: number;
  estimated: number;
  sockets: number[];
  wrong: string[];
}
/** A stretch of time; `performance.now()`. */
export interface Stretch {
  from: number;
  to: number;
}
/** What may have got lost: answers on their way to hermes; what a process knew and had not written; writes, which wait for the store. */
export type Trouble = 'way' | 'process' | 'store';
export interface World {
  random: Random;
  upstream: FakeUpstream;
  redis: RedisPair;
  postgres: PostgresService;
  instances: [Instance, Instance];
  /** Open sockets of each process when it had just started. */
  restart(index: number): Promise<void>;
  network: Network | undefined;
  clock: SteppedClock | undefined;
  /** Ids under which each order was paid. */
  paid: Map<string, Set<string>>;
  /** When the upstream had answered whole; `performance.now()`. */
  answers: Stretch[];
  trouble: Record<Trouble, Stretch[]>;
  calm: boolean;
  report: MachineReport;
  close(): Promise<void>;
}

/** The business side: remembers under which ids an order was paid. */
async function startTill(): Promise<{ port: number; paid: Map<string, Set<string>>; close(): void }> {
  const paid = new Map<string, Set<string>>();
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (data) => (text += data)).on('error', () => undefined);
    request.on('end', () => {
      const { request_id, params } = JSON.parse(text) as { request_id: string; params: { order_id: string } };
      paid.set(params.order_id, (paid.get(params.order_id) ?? new Set()).add(request_id));
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}');
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  return { port: (server.address() as AddressInfo).port, paid, close };
}

/** Answers; a question for a refund asks for the tool first. Every tenth call fails in one of the usual ways. */
function behave({ upstream, random, answers }: Pick<World, 'upstream' | 'random' | 'answers'>, calm: () => boolean): void {
  upstream.on('m', async (reply, call) => {
    const newest = String(call.body.messages.findLast(({ role }) => role === 'user')?.content);
    const answered = call.body.messages.at(-1)?.role === 'tool';
    if (!calm() && random.below(10) === 0) {
      const how = random.below(4);
      if (how === 0) return reply.error(500);
      if (how === 1) return reply.error(429, 'slow down', { headers: { 'retry-after': '0' } });
      if (how === 2) return reply.reset();
      return reply.cut(5);
    }
    reply.response.on('close', () => {
      if (!call.aborted) answers.push({ from: call.at, to: performance.now() });
    });
    const order = /refund (\S+)/.exec(newest)?.[1];
    if (order && !answered) {
      const name = call.body.tools?.[0]?.function?.name ?? 'refund';
      return reply.completion({
        tool_calls: [{ id: `call_${order}`.slice(0, 40), type: 'function', function: { name, arguments: JSON.stringify({ order_id: order }) } }],
      });
    }
    return reply.completion({ content: `re: ${newest}` });
  });
}

function toConfig(models: string, tools: string): object {
  return {
    session: { max_history_messages: 2000, max_context_tokens: 1_000_000 },
    models: [
      {
        id: 'm',
        provider: 'openai',
        model_name: 'm',
        api_base: models,
        api_key_env: 'UP_KEY',
        timeout_ms: 4000,
        first_token_timeout_ms: 3000,
        failover: { failure_threshold: 50, cooldown_ms: 200 },
      },
    ],
    tools: [
      { id: 'refund', endpoint: tools, side_effects: true, timeout_ms: 3000, parameters: { type: 'object', properties: { order_id: { type: 'string' } } } },
    ],
    route_rules: [{ id: 'default', match: '.*', model: 'm', tools: ['refund'] }],
  };
}

/** Two instances on machines of their own (where that can be had), a Redis pair with its Sentinel, PostgreSQL, one upstream, one tool. */
export async function buildWorld(seed: number): Promise<World> {
  const closers: (() => unknown)[] = [];
  const close = async (): Promise<void> => {
    for (const end of closers.reverse()) await end();
  };
  try {
    return await furnish(seed, closers, close);
  } catch (error) {
    await close();
    throw error;
  }
}

async function furnish(seed: number, closers: (() => unknown)[], close: () => Promise<void>): Promise<World> {
  const open = async <T extends { close(): unknown } | { stop(): unknown }>(opening: Promise<T>): Promise<T> => {
    const part = await opening;
    closers.push(() => ('close' in part ? part.close() : part.stop()));
    return part;
  };
  const network = networkMissing() === undefined ? await open(createNetwork(2)) : undefined;
  const at = (service: 'redis' | 'models' | 'postgres' | 'tools'): string => network?.address(service) ?? '127.0.0.1';
  const [upstream, redis, postgres, till] = await Promise.all([
    open(createFakeUpstream()),
    open(startRedisPair(at('redis'), async (port) => network?.forward('redis', port))),
    open(startPostgres()),
    open(startTill()),
  ]);
  const database = new URL(await postgres.createDatabase());
  await network?.forward('models', upstream.port);
  await network?.forward('postgres', portOf(database.href));
  await network?.forward('tools', till.port);
  database.hostname = at('postgres');
  const config = toConfig(`http://${network ? MODELS_NAME : '127.0.0.1'}:${upstream.port}/v1`, `http://${at('tools')}:${till.port}/refund`);
  const env = { REDIS_URL: redis.url, DATABASE_URL: database.href };
  const clock = clockMissing() === undefined ? createClock(temporaryFolder()) : undefined;
  const start = (index: number, port: number): Promise<Instance> =>
    startInstance(config, {
      port,
      // The second one's clock can be stepped.
      env: { ...env, ...(index === 1 ? clock?.env : {}) },
      ...(network && { wrapper: network.wrapper(index), host: '0.0.0.0', reachedAt: network.hostAddress(index) }),
    });
  const instances: [Instance, Instance] = [await start(0, await freePort()), await start(1, await freePort())];
  closers.push(() => {
    for (const instance of instances) {
      instance.kill('SIGCONT');
      instance.kill('SIGKILL');
    }
  });
  const report: MachineReport = {
    ...{ seed, faults: {}, requests: 0, acknowledged: 0, failed: 0, statuses: {}, refunds: 0, told: 0 },
    ...{ upstreamCalls: 0, bookedCalls: 0, answered: 0, unsure: 0, bookedAnswers: 0, estimated: 0, sockets: [], wrong: [] },
  };
  const world: World = {
    ...{ random: createRandom(seed), upstream, redis, postgres, instances, network, clock },
    ...{ paid: till.paid, answers: [], trouble: { way: [], process: [], store: [] }, calm: false, report, close },
    async restart(index) {
      const old = instances[index];
      // A machine that starts asks for the time.
      if (index === 1) clock?.step(0);
      if (old) instances[index] = await start(index, old.port);
    },
  };
  behave(world, () => world.calm);
  return world;
}

export const HEADERS = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
const ANSWER_MS = 15_000;

/** Undefined: nobody knows how it went. */
export async function ask(world: World, body: object): Promise<{ status: number; text: string } | undefined> {
  const { report } = world;
  report.requests++;
  const { base } = world.random.pick(world.instances);
  const saw = (status: number): void => {
    report.statuses[status] = (report.statuses[status] ?? 0) + 1;
  };
  try {
    const response = await fetch(`${base}/v1/chat`, { method: 'POST', headers: HEADERS, body: JSON.stringify(body), signal: AbortSignal.timeout(ANSWER_MS) });
    const text = await response.text();
    saw(response.status);
    return { status: response.status, text };
  } catch {
    saw(0);
    return undefined;
  }
}

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { KEY, user } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { type Instance, startInstance } from '../operations/instance.ts';
import { freePort, type PostgresService, type RedisService, startPostgres, startRedis } from '../services.ts';
import { createRandom, type Random } from './random.ts';

export interface MachineReport {
  seed: number;
  faults: Record<string, number>;
  requests: number;
  acknowledged: number;
  failed: number;
  refunds: number;
  /** Refunds that the model was told were not made. */
  refused: number;
  upstreamCalls: number;
  bookedCalls: number;
  wrong: string[];
}
interface World {
  random: Random;
  upstream: FakeUpstream;
  redis: RedisService;
  postgres: PostgresService;
  instances: Instance[];
  env: Record<string, string>;
  config: object;
  /** Executions of each business action, by its order. */
  paid: Map<string, Set<string>>;
  calls: Map<string, number>;
  report: MachineReport;
  close(): Promise<void>;
}
const HEADERS = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
const ANSWER_MS = 15_000;

/** The business side: pays an order once for each `request_id`, and remembers the ids. */
async function startTill(): Promise<{ url: string; paid: Map<string, Set<string>>; calls: Map<string, number>; close(): void }> {
  const paid = new Map<string, Set<string>>();
  const calls = new Map<string, number>();
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (data) => (text += data));
    request.on('end', () => {
      const { request_id, params } = JSON.parse(text) as { request_id: string; params: { order_id: string } };
      const ids = paid.get(params.order_id) ?? new Set();
      paid.set(params.order_id, ids.add(request_id));
      calls.set(request_id, (calls.get(request_id) ?? 0) + 1);
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}');
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/refund`, paid, calls, close: () => server.close() };
}

/** Answers; a question for a refund asks for the tool first. Every tenth call fails in one of the usual ways. */
function behave(upstream: FakeUpstream, random: Random, calm: () => boolean): void {
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
    const order = /refund (\S+)/.exec(newest)?.[1];
    if (order && !answered) {
      const name = call.body.tools?.[0]?.function?.name ?? 'refund';
      return reply.completion({ tool_calls: [{ id: `call_${order}`, type: 'function', function: { name, arguments: JSON.stringify({ order_id: order }) } }] });
    }
    return reply.completion({ content: `re: ${newest}` });
  });
}

async function build(seed: number): Promise<World> {
  const [upstream, redis, postgres, till] = await Promise.all([createFakeUpstream(), startRedis(['--appendfsync', 'no']), startPostgres(), startTill()]);
  const env = { REDIS_URL: redis.url, DATABASE_URL: await postgres.createDatabase() };
  const config = {
    session: { max_history_messages: 2000, max_context_tokens: 1_000_000 },
    models: [
      { id: 'm', provider: 'openai', model_name: 'm', api_base: upstream.url, api_key_env: 'UP_KEY', failover: { failure_threshold: 50, cooldown_ms: 200 } },
    ],
    tools: [{ id: 'refund', endpoint: till.url, side_effects: true, parameters: { type: 'object', properties: { order_id: { type: 'string' } } } }],
    route_rules: [{ id: 'default', match: '.*', model: 'm', tools: ['refund'] }],
  };
  const instances: Instance[] = [];
  for (let i = 0; i < 2; i++) instances.push(await startInstance(config, { port: await freePort(), env }));
  const report = { seed, faults: {}, requests: 0, acknowledged: 0, failed: 0, refunds: 0, refused: 0, upstreamCalls: 0, bookedCalls: 0, wrong: [] };
  return {
    random: createRandom(seed),
    upstream,
    redis,
    postgres,
    instances,
    env,
    config,
    paid: till.paid,
    calls: till.calls,
    report,
    async close() {
      for (const instance of instances) {
        instance.kill('SIGCONT');
        instance.kill('SIGKILL');
      }
      till.close();
      await Promise.all([upstream.close(), redis.stop(), postgres.stop()]);
    },
  };
}

/** Undefined: nobody knows how it went. */
async function ask(world: World, body: object): Promise<{ status: number; text: string } | undefined> {
  world.report.requests++;
  const { base } = world.random.pick(world.instances);
  try {
    const response = await fetch(`${base}/v1/chat`, { method: 'POST', headers: HEADERS, body: JSON.stringify(body), signal: AbortSignal.timeout(ANSWER_MS) });
    return { status: response.status, text: await response.text() };
  } catch {
    return undefined;
  }
}

const FAULTS: Record<string, (world: World) => Promise<void>> = {
  async 'kill -9 and start'(world) {
    const index = world.random.below(2);
    const old = world.instances[index] as Instance;
    old.kill('SIGKILL');
    await old.exited;
    world.instances[index] = await startInstance(world.config, { port: old.port, env: world.env });
  },
  async 'stop and continue'(world) {
    const instance = world.random.pick(world.instances);
    instance.kill('SIGSTOP');
    await sleep(300 + world.random.below(900));
    instance.kill('SIGCONT');
  },
  async 'Redis killed'(world) {
    await world.redis.kill();
    await sleep(200 + world.random.below(600));
    await world.redis.start();
  },
  async 'Redis frozen'(world) {
    world.redis.freeze();
    await sleep(300 + world.random.below(900));
    world.redis.thaw();
  },
  async 'PostgreSQL killed'(world) {
    await world.postgres.kill();
    await sleep(200);
    await world.postgres.start();
  },
  async 'PostgreSQL frozen'(world) {
    world.postgres.freeze();
    await sleep(300 + world.random.below(500));
    world.postgres.thaw();
  },
};

/** Clients of two instances that share Redis and PostgreSQL, while one after the other fails. Then everything is counted. */
export async function runMachineFaults({ seed, faults, clients }: { seed: number; faults: number; clients: number }): Promise<MachineReport> {
  const world = await build(seed);
  const state = { going: true, calm: false };
  behave(world.upstream, world.random, () => state.calm);
  const sessions = Array.from({ length: clients }, (_, index) => ({ id: `s${index}-${randomUUID()}`, sure: [] as string[], maybe: new Set<string>() }));
  const refunds = Array.from({ length: clients }, () => ({ orders: [] as string[], refused: [] as string[] }));
  const talk = async (session: (typeof sessions)[number]): Promise<void> => {
    for (let turn = 0; state.going; turn++) {
      const text = `turn ${turn}`;
      const answer = await ask(world, { session_id: session.id, messages: user(text), stream: turn % 2 === 0 });
      if (answer?.status === 200 && !answer.text.includes('"error"')) session.sure.push(text);
      else session.maybe.add(text);
      await sleep(20);
    }
  };
  const refund = async (mine: (typeof refunds)[number]): Promise<void> => {
    while (state.going) {
      const order = `o-${randomUUID()}`;
      mine.orders.push(order);
      // A client that retries what it is not sure of, under the same name.
      for (let tries = 0; tries < 60; tries++) {
        const answer = await ask(world, { request_id: order, messages: user(`refund ${order}`), tools: ['refund'] });
        if (answer?.status === 200) {
          // The tool was refused before it was called (no store to claim the call in), the model was told so, and that is the answer.
          if (answer.text.includes('"status":"error"')) mine.refused.push(order);
          break;
        }
        if (tries === 59) world.report.wrong.push(`${order} never succeeded: ${answer?.status} ${answer?.text.slice(0, 200)}`);
        await sleep(100);
      }
      await sleep(60);
    }
  };
  try {
    const running = [...sessions.map(talk), ...refunds.map(refund)];
    await sleep(500);
    for (let i = 0; i < faults; i++) {
      const name = world.random.pick(Object.keys(FAULTS));
      world.report.faults[name] = (world.report.faults[name] ?? 0) + 1;
      await FAULTS[name]?.(world);
      await sleep(700 + world.random.below(600));
    }
    state.calm = true;
    await sleep(1500);
    state.going = false;
    await Promise.all(running);
    await judge(
      world,
      sessions,
      refunds.flatMap(({ orders }) => orders),
      new Set(refunds.flatMap(({ refused }) => refused)),
    );
    return world.report;
  } finally {
    await world.close();
  }
}

async function judge(
  world: World,
  sessions: { id: string; sure: string[]; maybe: Set<string> }[],
  orders: string[],
  refused: ReadonlySet<string>,
): Promise<void> {
  const { report, instances, upstream } = world;
  const base = instances[0]?.base ?? '';
  const admin = async <T>(path: string): Promise<T> => (await (await fetch(base + path, { headers: HEADERS })).json()) as T;
  for (const session of sessions) {
    report.acknowledged += session.sure.length;
    report.failed += session.maybe.size;
    const { messages = [] } = await admin<{ messages?: { role: string; content: string; superseded?: boolean }[] }>(
      `/admin/sessions/${session.id}?project=default`,
    );
    const stored = messages.filter(({ role, superseded }) => role === 'user' && !superseded).map(({ content }) => content);
    const lost = session.sure.filter((text) => !stored.includes(text));
    const doubled = stored.filter((text, index) => stored.indexOf(text) !== index);
    const unknown = stored.filter((text) => !session.sure.includes(text) && !session.maybe.has(text));
    if (lost.length + doubled.length + unknown.length > 0) report.wrong.push(`${session.id}: lost ${lost}; doubled ${doubled}; unknown ${unknown}`);
    const order = stored.map((text) => Number(text.split(' ')[1]));
    if (order.some((turn, index) => index > 0 && turn < (order[index - 1] ?? 0))) report.wrong.push(`${session.id}: out of order ${order}`);
    // No lock is left: the next turn is served at once.
    const began = performance.now();
    const next = await ask(world, { session_id: session.id, messages: user('turn 99999') });
    if (next?.status !== 200 || performance.now() - began > 10_000)
      report.wrong.push(`${session.id}: the next turn gives ${next?.status} ${next?.text.slice(0, 100)}`);
  }
  report.refunds = orders.length;
  report.refused = refused.size;
  for (const order of orders) {
    const ids = world.paid.get(order)?.size ?? 0;
    if (ids > 1 || (ids === 0 && !refused.has(order))) report.wrong.push(`${order} was paid under ${ids} ids`);
  }
  await sleep(1500);
  const { total } = await admin<{ total: { calls: number } }>('/admin/costs?day=today');
  report.bookedCalls = total?.calls ?? 0;
  report.upstreamCalls = upstream.calls.length;
  for (const instance of instances) {
    const text = await (await fetch(`${instance.base}/metrics`)).text();
    if (!/^hermes_requests_in_flight 0$/m.test(text)) report.wrong.push('requests in flight after the end');
    if (/uncaught|unhandled|TypeError|RangeError/i.test(instance.log()))
      report.wrong.push(`in the log: ${/.*(uncaught|unhandled|TypeError|RangeError).*/i.exec(instance.log())?.[0].slice(0, 200)}`);
  }
  if (upstream.calls.some(({ closedAt }) => closedAt === undefined)) report.wrong.push('upstream calls that are still open');
  if (upstream.violations.length > 0) report.wrong.push(`violations: ${upstream.violations.slice(0, 2)}`);
}

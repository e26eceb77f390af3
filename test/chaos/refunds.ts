import { mkdtemp, rm } from 'node:fs/promises';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type App, createApp } from '../../src/app.ts';
import { type Behaviour, createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { quiet } from '../upstream/failover-kit.ts';
import { seeded, sometimesIll } from './ills.ts';

/** The share of model calls that go wrong. */
const ILL = 0.3;
const CLIENT_TRIES = 6;
const CLIENT_TIMEOUT_MS = 1500;
const KEY = 'sk-chaos-5b1f0c7ad2e84';

interface Refunds {
  url: string;
  /** Order id to how often it was refunded. */
  done: Map<string, number>;
  close(): void;
}

async function createRefunds(): Promise<Refunds> {
  const done = new Map<string, number>();
  const server = http.createServer(async (request, response) => {
    let text = '';
    for await (const part of request) text += part;
    const { params } = JSON.parse(text) as { params: { order_id: string } };
    done.set(params.order_id, (done.get(params.order_id) ?? 0) + 1);
    await sleep(5);
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ refunded: params.order_id }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/refund`,
    done,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Asks for the refund that its user wants, then says so; anything else is answered straight away. */
const assistant: Behaviour = (reply, call) => {
  const asked = call.body.messages.findLast(({ role }) => role === 'user')?.content;
  const order = typeof asked === 'string' ? asked.match(/^refund (\S+)/)?.[1] : undefined;
  const ran = call.body.messages.some(({ role }) => role === 'tool');
  if (order === undefined || ran) return reply.completion({ content: `done: ${String(asked)}` });
  const name = call.body.tools?.[0]?.function.name ?? 'refund_apply';
  return reply.completion({
    tool_calls: [{ id: `call_${order}`.slice(0, 40), type: 'function', function: { name, arguments: JSON.stringify({ order_id: order }) } }],
  });
};

export interface ChaosOptions {
  commit: 'content' | 'complete';
  requests: number;
  atOnce: number;
  seed: number;
}
export interface Chaos {
  /** Order id to how often it was refunded; every other request asks for one. */
  refunds: Map<string, number>;
  /** Requests that failed for good: what their users saw. */
  failed: string[];
  /** Calls that reached the upstreams, and what was wrong with them. */
  calls: number;
  violations: string[];
  /** Upstream calls that are still open, requests in flight, and the heap before and after in MB. */
  left: { calls: number; requests: number };
  heapMb: [number, number];
}

async function start(commit: 'content' | 'complete', fake: FakeUpstream, refunds: Refunds): Promise<{ app: App; stop(): Promise<void> }> {
  const home = await mkdtemp(join(tmpdir(), 'chaos-'));
  const upstreams = ['a', 'b', 'c'].map((model_name) => ({ target: 'fake', model_name }));
  const file = {
    server: { host: '127.0.0.1', port: 0 },
    providers: { fake: { type: 'openai', api_base: fake.url, api_key_env: 'UPSTREAM_KEY' } },
    models: [
      {
        id: 'm',
        timeout_ms: 500,
        first_token_timeout_ms: 500,
        failover: { strategy: 'weighted_round_robin', upstreams, failure_threshold: 20, cooldown_ms: 50, max_attempts: 6, commit },
      },
    ],
    tools: [
      {
        id: 'refund.apply',
        description: 'Pays an order back.',
        parameters: { type: 'object', properties: { order_id: { type: 'string' } }, required: ['order_id'] },
        endpoint: refunds.url,
        side_effects: true,
      },
    ],
    route_rules: [{ id: 'all', match: '.*', model: 'm', tools: ['refund.apply'] }],
  };
  const env = { API_KEY: KEY, UPSTREAM_KEY: 'sk-upstream', DATABASE_URL: `sqlite:///${join(home, 'hermes.db')}` };
  const app = await createApp({ load: { file: join(home, 'hermes.yaml'), text: JSON.stringify(file), env, cwd: home }, createLog: () => quiet });
  const stop = async (): Promise<void> => {
    await app.stop();
    await rm(home, { recursive: true, force: true });
  };
  return { app, stop };
}

/** One try of a client; what its user sees, or undefined when it has to try again. */
async function attempt(app: App, id: string, text: string, stream: boolean): Promise<string | undefined> {
  try {
    const response = await fetch(`http://127.0.0.1:${app.port}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({ request_id: id, stream, messages: [{ role: 'user', content: text }] }),
      signal: AbortSignal.timeout(CLIENT_TIMEOUT_MS),
    });
    const body = await response.text();
    if (response.status !== 200) return undefined;
    if (!stream) return JSON.parse(body).choices[0].message.content;
    const events = body.split('\n\n').filter((event) => event.startsWith('data: '));
    if (events.at(-1) !== 'data: [DONE]') return undefined;
    return events
      .slice(0, -1)
      .map((event) => JSON.parse(event.slice(6)).choices?.[0]?.delta?.content ?? '')
      .join('');
  } catch {
    return undefined;
  }
}

/** A third of all model calls goes wrong while clients time out and retry with the same request id; half of them want a refund. */
export async function chaos({ commit, requests, atOnce, seed }: ChaosOptions): Promise<Chaos> {
  const [fake, refunds] = await Promise.all([createFakeUpstream(), createRefunds()]);
  const random = seeded(seed);
  for (const id of ['a', 'b', 'c']) fake.on(id, sometimesIll(ILL, random, assistant));
  const { app, stop } = await start(commit, fake, refunds);
  const failed: string[] = [];
  const before = heapMb();
  let next = 0;
  const client = async (): Promise<void> => {
    for (let number = next++; number < requests; number = next++) {
      const text = number % 2 === 0 ? `refund order-${number}` : `question ${number}`;
      let said: string | undefined;
      for (let tries = 0; said === undefined && tries < CLIENT_TRIES; tries++) {
        if (tries > 0) await sleep(70);
        said = await attempt(app, `request-${number}`, text, number % 4 < 2);
      }
      if (said !== `done: ${text}`) failed.push(`${text}: ${said}`);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, client));
  const open = (): number => fake.calls.filter(({ closedAt }) => closedAt === undefined).length;
  await fake.until(() => open() === 0).catch(() => undefined);
  const metrics = await (await fetch(`http://127.0.0.1:${app.port}/metrics`)).text();
  const left = { calls: open(), requests: Number(/^hermes_requests_in_flight (\d+)/m.exec(metrics)?.[1] ?? -1) };
  const heap: Chaos['heapMb'] = [before, heapMb()];
  await stop();
  refunds.close();
  await fake.close();
  return { refunds: refunds.done, failed, calls: fake.calls.length, violations: fake.violations, left, heapMb: heap };
}

function heapMb(): number {
  globalThis.gc?.();
  return Math.round(process.memoryUsage().heapUsed / 2 ** 20);
}

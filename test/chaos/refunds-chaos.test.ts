import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type App, createApp } from '../../src/app.ts';
import { type Behaviour, createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { quiet } from '../upstream/failover-kit.ts';
import { seeded, sometimesIll } from './ills.ts';

/** The share of model calls that go wrong. */
const ILL = 0.3;
const REQUESTS = 120;
const AT_ONCE = 12;
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
  return reply.completion({ tool_calls: [{ id: `call_${order}`, type: 'function', function: { name, arguments: JSON.stringify({ order_id: order }) } }] });
};

interface Run {
  refunds: Refunds;
  fake: FakeUpstream;
  /** Requests that failed for good: what their users saw. */
  failed: string[];
}

async function start(context: TestContext, commit: 'content' | 'complete', fake: FakeUpstream, refunds: Refunds): Promise<App> {
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
  context.after(async () => {
    await app.stop();
    await rm(home, { recursive: true, force: true });
  });
  return app;
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

async function chaos(context: TestContext, commit: 'content' | 'complete', seed: number): Promise<Run> {
  const [fake, refunds] = await Promise.all([createFakeUpstream(), createRefunds()]);
  context.after(async () => {
    refunds.close();
    await fake.close();
  });
  const random = seeded(seed);
  for (const id of ['a', 'b', 'c']) fake.on(id, sometimesIll(ILL, random, assistant));
  const app = await start(context, commit, fake, refunds);
  const failed: string[] = [];
  let next = 0;
  const client = async (): Promise<void> => {
    for (let number = next++; number < REQUESTS; number = next++) {
      const text = number % 2 === 0 ? `refund order-${number}` : `question ${number}`;
      let said: string | undefined;
      for (let tries = 0; said === undefined && tries < CLIENT_TRIES; tries++) {
        if (tries > 0) await sleep(70);
        said = await attempt(app, `request-${number}`, text, number % 4 < 2);
      }
      if (said !== `done: ${text}`) failed.push(`${text}: ${said}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, client));
  await fake.until(() => fake.calls.every(({ closedAt }) => closedAt !== undefined));
  return { refunds, fake, failed };
}

for (const [commit, seed] of [
  ['complete', 11],
  ['content', 12],
] as const) {
  test(`chaos, commit: ${commit}: a third of all model calls fail, clients retry, and every refund is paid exactly once`, async (context) => {
    const { refunds, failed, fake } = await chaos(context, commit, seed);
    assert.deepEqual(failed, []);
    assert.equal(refunds.done.size, REQUESTS / 2);
    assert.deepEqual(
      [...refunds.done].filter(([, times]) => times !== 1),
      [],
    );
    assert.deepEqual(fake.violations, []);
  });
}

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Agent } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { user } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { freePort, type PostgresService, type RedisService, skipWithout, startPostgres, startRedis } from '../services.ts';
import { chat, isServed, type Result } from './client.ts';
import { type Instance, startInstance } from './instance.ts';
import { type Nginx, nginxMissing, startNginx } from './nginx.ts';

const needs = skipWithout('redis', 'postgres');
const missing = needs.skip || nginxMissing() || false;

/** `HERMES_ROUNDS=10 HERMES_RATE=500` on a machine at rest: other suites run beside this one. */
const ROUNDS = Number(process.env.HERMES_ROUNDS ?? 1);
const REQUESTS_PER_SECOND = Number(process.env.HERMES_RATE ?? 60);
const SESSIONS = 4;
const agent = new Agent({ keepAlive: true });

/** Requests that were sent once more. */
let again = 0;

/**
 * As SDKs do: a request that nobody has answered is sent once more. On a machine that has no time to spare the kernel may reset connections
 * between the last look at who knocks and the listener's end; `HERMES_RATE` is for machines at rest and forgives nothing.
 */
async function chatAsSdksDo(base: string, body: object): Promise<Result> {
  const first = await chat(agent, base, body);
  if (process.env.HERMES_RATE !== undefined || (first.status !== 0 && first.status !== 502)) return first;
  again++;
  return chat(agent, base, body);
}

/** So many a second, whether or not the earlier ones are answered; one in ten is a stream of most of a second. */
async function steadyLoad(base: string, perSecond: number, going: () => boolean): Promise<Result[]> {
  const results: Promise<Result>[] = [];
  for (const began = performance.now(); going(); await sleep(10))
    for (let due = ((performance.now() - began) * perSecond) / 1000; results.length < due; ) {
      const slow = results.length % 10 === 0;
      const text = slow ? `slow ${results.length}` : `question ${results.length}`;
      results.push(chatAsSdksDo(base, { messages: user(text), stream: slow || results.length % 2 === 0 }));
    }
  return Promise.all(results);
}

describe('two instances behind a plain nginx', { skip: missing, timeout: 120_000 + ROUNDS * 20_000 }, () => {
  let upstream: FakeUpstream;
  let redis: RedisService;
  let postgres: PostgresService;
  let nginx: Nginx;
  let env: Record<string, string>;
  const instances: Instance[] = [];
  const config = (): object => ({
    server: { drain_delay_ms: 600, drain_timeout_ms: 15_000 },
    session: { max_history_messages: 2000, max_context_tokens: 1_000_000 },
    models: [{ id: 'm', provider: 'openai', model_name: 'm', api_base: upstream.url, api_key_env: 'UP_KEY' }],
  });
  before(async () => {
    [upstream, redis, postgres] = await Promise.all([createFakeUpstream(), startRedis(['--appendfsync', 'no']), startPostgres()]);
    upstream.on('m', (reply, call) => {
      const newest = String(call.body.messages.at(-1)?.content);
      return newest.startsWith('slow')
        ? reply.stream([...[...'a stream that lasts'].map((letter) => ({ content: letter })), 'stop'], { delayMs: 40 })
        : reply.completion({ content: `answer to ${newest}` });
    });
    env = { REDIS_URL: redis.url, DATABASE_URL: await postgres.createDatabase() };
    const ports = [await freePort(), await freePort()];
    for (const port of ports) instances.push(await startInstance(config(), { port, env }));
    nginx = await startNginx(ports);
  });
  after(async () => {
    await nginx?.stop();
    for (const instance of instances) instance.kill('SIGKILL');
    await Promise.all([upstream?.close(), redis?.stop(), postgres?.stop()]);
    agent.destroy();
  });

  it('are restarted in turn under load without one failed request, and no session loses or doubles a turn', async () => {
    const results: Result[] = [];
    let going = true;
    const talk = async (sessionId: string): Promise<void> => {
      for (let turn = 0; going; turn++) {
        const result = await chatAsSdksDo(nginx.base, { messages: user(`turn ${turn}`), stream: turn % 2 === 0, session_id: sessionId });
        results.push(result);
        // The rest of its turns would be counted wrong; what failed is told below.
        if (result.status !== 200) return;
        assert.equal(result.sessionMessages, turn * 2, `${sessionId}, turn ${turn}`);
        await sleep(30);
      }
    };
    const began = performance.now();
    const load = steadyLoad(nginx.base, REQUESTS_PER_SECOND, () => going);
    const sessions = Array.from({ length: SESSIONS }, (_, number) => talk(`session-${number}-${randomUUID()}`));
    await sleep(1000);
    for (let round = 0; round < ROUNDS; round++)
      for (const [index, old] of instances.entries()) {
        old.kill('SIGTERM');
        assert.equal(await old.exited, 0, old.log().slice(-400));
        instances[index] = await startInstance(config(), { port: old.port, env });
        await sleep(300);
      }
    going = false;
    const seconds = (performance.now() - began) / 1000;
    await Promise.all(sessions);
    results.push(...(await load));
    const failed = results.filter((result) => !isServed(result));
    assert.deepEqual(failed.slice(0, 3), [], `${failed.length} of ${results.length} failed; nginx: ${nginx.errors()}`);
    assert.ok(results.length > REQUESTS_PER_SECOND * seconds * 0.9, `only ${results.length} requests in ${seconds} s`);
    const streams = results.filter(({ text }) => text.startsWith('data:')).length;
    process.stdout.write(
      `# rolling restart: ${results.length} requests in ${seconds.toFixed(1)} s, ${streams} of them streams; ${2 * ROUNDS} restarts; ${again} sent once more, 0 failed\n`,
    );
  });
});

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Reply, type RunningApp, startApp, user } from '../app-kit.ts';
import { type PostgresService, type RedisService, skipWithout, startPostgres, startRedis, temporaryFolder, until } from '../services.ts';
import { startStopwatch } from '../time-kit.ts';

/** By this process' own time: what it stood still in, on a busy machine, no request waited for. Each illness lasts longer. */
const SLOWEST_MS = 1500;
const ILL_MS = 4000;
const models = [{ id: 'm', provider: 'simulator' }];

/** A question that the simulator answers by `re: TEXT`. */
const ask = (text: string) => user(`[[say re: ${text}]] ${text}`);

async function stored(app: RunningApp, session: string): Promise<string[]> {
  const { data = [] } = (await app.fetch(`/admin/sessions/${session}/export?format=json`)).json as { data?: { role: string; content: string }[] };
  return data.map(({ role, content }) => (role === 'user' ? (content.split(']] ')[1] ?? content) : content));
}
const linear = (texts: readonly string[]): string[] => texts.flatMap((text) => [text, `re: ${text}`]);

interface Load {
  requests: number;
  failed: string[];
  slowest: number;
  /** Turns of each session, in the order in which they were answered. */
  told: Map<string, string[]>;
}
/** One client a session, one turn after the other, until `over` resolves. */
async function load(app: RunningApp, sessions: number, over: Promise<unknown>): Promise<Load> {
  const done: Load = { requests: 0, failed: [], slowest: 0, told: new Map() };
  let running = true;
  void over.then(() => {
    running = false;
  });
  await Promise.all(
    Array.from({ length: sessions }, async (_, number) => {
      const session = `s${number}`;
      const told: string[] = [];
      done.told.set(session, told);
      for (let turn = 0; running; turn++) {
        const text = `${session} turn ${turn}`;
        const watch = startStopwatch();
        const reply = await app.chat({ session_id: session, stream: turn % 2 === 0, messages: ask(text) });
        done.slowest = Math.max(done.slowest, watch.stop());
        done.requests++;
        if (reply.status === 200 && !reply.text.includes('"error"')) told.push(text);
        else done.failed.push(`${text}: ${reply.status} ${reply.text.slice(0, 200)}`);
        await sleep(15);
      }
    }),
  );
  return done;
}

describe('Redis killed, frozen and restored under load', skipWithout('redis'), () => {
  let redis: RedisService;
  let app: RunningApp;
  before(async () => {
    redis = await startRedis();
    app = await startApp({ models }, { env: { REDIS_URL: redis.url, DATABASE_URL: `sqlite:///${join(temporaryFolder(), 'hermes.db')}` } });
  });
  after(async () => {
    await app.stop();
    await redis.stop();
  });

  test('fails no request, makes none slower than 1.5 s, and every history is right', async () => {
    const ills = async (): Promise<void> => {
      await sleep(300);
      redis.freeze();
      await sleep(ILL_MS);
      redis.thaw();
      await sleep(500);
      await redis.kill();
      await sleep(ILL_MS);
      await redis.start();
      await sleep(1000);
    };
    // The first turn of a process loads the tokenizer.
    await app.chat({ session_id: 'first', messages: ask('first') });
    const { failed, slowest, told, requests } = await load(app, 8, ills());
    assert.deepEqual(failed, []);
    assert.ok(slowest < SLOWEST_MS, `${slowest} ms`);
    assert.ok(requests > 100, `${requests} requests`);
    for (const [session, texts] of told) assert.deepEqual(await stored(app, session), linear(texts), session);
    assert.ok(
      app.lines.some(({ level, message }) => level === 'warn' && /Redis/i.test(message)),
      'nobody was told',
    );
  });
});

describe('two instances on one Redis and one PostgreSQL', skipWithout('redis', 'postgres'), () => {
  let redis: RedisService;
  let postgres: PostgresService;
  let apps: RunningApp[];
  before(async () => {
    [redis, postgres] = await Promise.all([startRedis(), startPostgres()]);
    const env = { REDIS_URL: redis.url, DATABASE_URL: await postgres.createDatabase() };
    apps = await Promise.all([startApp({ models }, { env }), startApp({ models }, { env })]);
  });
  after(async () => {
    await Promise.all(apps.map((app) => app.stop()));
    await Promise.all([redis.stop(), postgres.stop()]);
  });

  test('alternating and concurrent turns of twenty sessions make one line in each', async () => {
    await Promise.all(
      Array.from({ length: 20 }, async (_, number) => {
        const session = `line${number}`;
        for (let turn = 0; turn < 6; turn += 2) {
          // Two at once, one on each instance; then the other way round.
          const texts = [`turn ${turn}`, `turn ${turn + 1}`];
          const replies = await Promise.all(texts.map((text, at) => apps[(at + turn / 2) % 2]?.chat({ session_id: session, messages: ask(text) })));
          assert.deepEqual(
            replies.map((reply) => reply?.status),
            [200, 200],
          );
        }
        const [app] = apps;
        assert.ok(app);
        const messages = await stored(app, session);
        assert.equal(messages.length, 12, messages.join(' | '));
        const asked = messages.filter((_, at) => at % 2 === 0);
        assert.deepEqual(messages, linear(asked), 'every answer follows its question');
        assert.deepEqual(
          asked.toSorted(),
          Array.from({ length: 6 }, (_, turn) => `turn ${turn}`),
        );
        for (let pair = 0; pair < 6; pair += 2) assert.deepEqual(asked.slice(pair, pair + 2).toSorted(), [`turn ${pair}`, `turn ${pair + 1}`]);
      }),
    );
  });

  test('PostgreSQL away: a turn that cannot be made durable is a clear 503 at once, without a session all goes on, and history is right when it is back', async () => {
    const [app, other] = apps;
    assert.ok(app && other);
    await app.chat({ session_id: 'durable', messages: ask('one') });
    const { id } = (await app.post('/v1/responses', { model: 'm', input: 'keep it' })).json;
    await postgres.kill();
    for (let i = 0; i < 6; i++) {
      const watch = startStopwatch();
      const reply: Reply = await (i % 2 ? app : other).chat({ session_id: 'durable', messages: ask('lost') });
      assert.equal(reply.status, 503, reply.text);
      assert.equal(reply.json.error?.code, 'session_store_unavailable');
      assert.ok(reply.headers.get('retry-after'));
      assert.ok(watch.stop() < SLOWEST_MS, `${watch.ms()} ms`);
    }
    assert.equal((await app.chat({ messages: ask('no session') })).status, 200);
    for (const [method, path] of [
      ...['sessions', 'sessions/durable', 'sessions/durable/export', 'costs', 'traces', 'traces/x', 'keys'].map((name) => ['GET', `/admin/${name}`] as const),
      ...[`/v1/responses/${String(id)}`, `/v1/responses/${String(id)}/input_items`].map((path) => ['GET', path] as const),
      ...['/admin/sessions/durable', '/admin/keys/x', `/v1/responses/${String(id)}`].map((path) => ['DELETE', path] as const),
    ]) {
      const { status, json, headers } = await app.fetch(path, { method });
      assert.deepEqual([status, json.error?.code, headers.get('retry-after')], [503, 'session_store_unavailable', '2'], path);
      assert.doesNotMatch(json.error?.message ?? '', /turn|without session_id/, path);
    }
    const added = await app.post('/admin/keys', { id: 'new' });
    assert.deepEqual([added.status, added.json.error?.code], [503, 'session_store_unavailable']);
    await postgres.start();
    await until(async () => (await app.chat({ session_id: 'durable', messages: ask('two') })).status === 200, 'it was not used again');
    assert.deepEqual(await stored(app, 'durable'), linear(['one', 'two']));
  });
});

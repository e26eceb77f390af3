import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { user } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { ask, chat, isServed, type Result } from '../operations/client.ts';
import { type Instance, startInstance } from '../operations/instance.ts';
import { type PostgresService, type RedisService, skipWithout, startPostgres, startRedis, temporaryFolder, until } from '../services.ts';

/** Each request on a connection of its own: the next worker takes it. */
const fresh = new Agent({ keepAlive: false });

interface LogLine {
  pid: number;
  msg: string;
  [field: string]: unknown;
}
const linesOf = (gateway: Instance): LogLine[] =>
  gateway
    .log()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as LogLine);
const said = (gateway: Instance, message: string): LogLine[] => linesOf(gateway).filter(({ msg }) => msg === message);
/** Processes that served a chat since there were `from` log lines. */
const servers = (gateway: Instance, from = 0): Set<number> =>
  new Set(
    linesOf(gateway)
      .slice(from)
      .filter(({ path }) => path === '/v1/chat/completions')
      .map(({ pid }) => pid),
  );
const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};
async function metric(gateway: Instance, series: string): Promise<number> {
  const { text } = await ask(fresh, `${gateway.base}/metrics`);
  const line = text.split('\n').find((each) => each.startsWith(`${series} `));
  return line === undefined ? Number.NaN : Number(line.slice(series.length + 1));
}
const total = (text: string): number =>
  text
    .split('\n')
    .filter((line) => line.startsWith('hermes_requests_total{'))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);

describe('several workers on one port', { ...skipWithout('redis', 'postgres'), timeout: 170_000 }, () => {
  let upstream: FakeUpstream;
  let redis: RedisService;
  let postgres: PostgresService;
  let gateway: Instance | undefined;
  const model = (): object => ({ id: 'm', provider: 'openai', model_name: 'm', api_base: upstream.url, api_key_env: 'UP_KEY' });
  const config = (more: object = {}): object => ({ server: { workers: 2 }, models: [model()], ...more });
  const start = async (more: object = {}): Promise<Instance> => {
    gateway = await startInstance(config(more), { env: { REDIS_URL: redis.url, DATABASE_URL: await postgres.createDatabase() } });
    return gateway;
  };
  /** Chats until two processes have served one. */
  const bothServe = async (at: Instance, from = 0): Promise<number[]> => {
    await until(
      async () => {
        assert.equal((await chat(fresh, at.base, { messages: user('who is there?') })).status, 200);
        return servers(at, from).size === 2;
      },
      'both workers served',
      20_000,
    );
    return [...servers(at, from)];
  };

  before(async () => {
    [upstream, redis, postgres] = await Promise.all([createFakeUpstream(), startRedis(['--appendfsync', 'no']), startPostgres()]);
    upstream.on('m', (reply, call) => {
      const newest = String(call.body.messages.at(-1)?.content);
      return newest.startsWith('slow')
        ? reply.stream([...[...'a stream that lasts'].map((letter) => ({ content: letter })), 'stop'], { delayMs: 40 })
        : reply.completion({ content: `answer to ${newest}` });
    });
  });
  afterEach(async () => {
    // The workers of a primary that is killed end by themselves.
    gateway?.kill('SIGKILL');
    await gateway?.exited;
    gateway = undefined;
  });
  after(() => Promise.all([upstream?.close(), redis?.stop(), postgres?.stop()]));

  it('say once that they listen, share the requests, and stop without losing one', async () => {
    const running = await start();
    const ready = said(running, 'listening');
    assert.deepEqual(
      ready.map(({ workers, port, pid }) => [workers, port, pid]),
      [[2, running.port, running.process.pid]],
    );
    const pids = await bothServe(running);
    assert.ok(!pids.includes(running.process.pid ?? 0), 'the primary serves nothing');
    const streams = Array.from({ length: 6 }, () => chat(fresh, running.base, { messages: user('slow'), stream: true }));
    await upstream.until(() => upstream.calls.filter(({ raw }) => raw.includes('"slow"')).length === 6);
    running.kill('SIGTERM');
    assert.ok((await Promise.all(streams)).every(isServed));
    assert.equal(await running.exited, 0, running.log().slice(-500));
    assert.deepEqual(pids.filter(isAlive), []);
    assert.deepEqual([said(running, 'stopping').length, said(running, 'stopped').length], [1, 1]);
  });

  it('answer with one voice: metrics, traces, statistics and switches, whoever is asked', async () => {
    // Without a store for traces: what is found is in the workers' memories.
    const running = await start({ trace: { keep_days: 0 }, route_rules: [{ id: 'all', match: '.*', model: 'm' }] });
    await bothServe(running);
    const results = await Promise.all(Array.from({ length: 10 }, (_, at) => chat(fresh, running.base, { messages: user(`question ${at}`) })));
    const ids = results.map(({ headers }) => String(headers['x-request-id']));
    const admin = async (path: string, method = 'GET'): Promise<Record<string, unknown>> => {
      const { status, text } = await ask(fresh, `${running.base}/admin/${path}`, undefined, method);
      assert.equal(status, 200, text);
      return JSON.parse(text) as Record<string, unknown>;
    };
    for (const id of ids) for (let time = 0; time < 2; time++) assert.equal((await admin(`traces/${id}`)).id, id);
    const chats = said(running, 'request').filter(({ path }) => path === '/v1/chat/completions').length;
    const seen: string[] = [];
    for (let cursor: unknown = '', page = 0; cursor !== null; page++) {
      assert.ok(page < 100);
      const { data, next_cursor } = await admin(`traces?limit=4${cursor ? `&cursor=${String(cursor)}` : ''}`);
      seen.push(...(data as { id: string }[]).map(({ id }) => id));
      cursor = next_cursor;
    }
    assert.equal(new Set(seen).size, seen.length, 'no trace stands twice');
    assert.deepEqual(
      ids.filter((id) => !seen.includes(id)),
      [],
    );
    assert.equal(seen.length, chats);
    for (let time = 0; time < 4; time++) {
      assert.equal(await metric(running, 'hermes_route_hits_total{route="all"}'), chats);
      const { statistics } = (await admin('routes')) as { statistics: { decisions: number; rules: { rule: string; hits: number }[] } };
      assert.deepEqual([statistics.decisions, statistics.rules.find(({ rule }) => rule === 'all')?.hits], [chats, chats]);
    }
    assert.equal(await metric(running, 'hermes_workers'), 2);
    await admin('upstreams/m/drain', 'POST');
    for (let time = 0; time < 4; time++) assert.equal((await chat(fresh, running.base, { messages: user('drained?') })).status, 503);
    await admin('upstreams/m/reset', 'POST');
    for (let time = 0; time < 4; time++) assert.equal((await chat(fresh, running.base, { messages: user('back?') })).status, 200);
    const { data } = (await admin('upstreams')) as { data: { state: string }[] };
    assert.deepEqual(
      data.map(({ state }) => state),
      ['closed'],
    );
  });

  it('are replaced when they crash, and what they had counted still counts', async () => {
    const running = await start();
    const [victim = 0, other = 0] = await bothServe(running);
    const before = total((await ask(fresh, `${running.base}/metrics`)).text);
    const from = linesOf(running).length;
    process.kill(victim, 'SIGKILL');
    await until(() => said(running, 'a worker ended, another takes its place').length === 1, 'the log tells of it');
    const [told] = said(running, 'a worker ended, another takes its place');
    assert.deepEqual([told?.worker_pid, told?.signal, told?.pid], [victim, 'SIGKILL', running.process.pid]);
    const after = total((await ask(fresh, `${running.base}/metrics`)).text);
    assert.ok(after >= before, `${before} requests became ${after}`);
    const now = await bothServe(running, from);
    assert.ok(now.includes(other) && !now.includes(victim));
    await until(async () => (await metric(running, 'hermes_workers')) === 2, 'two workers again');
    // The successor ends too: that is told as well, and mended as well.
    process.kill(now.find((pid) => pid !== other) ?? 0, 'SIGKILL');
    await until(() => said(running, 'a worker ended, another takes its place').length === 2, 'the log tells of it');
    assert.equal(said(running, 'a worker ended, another takes its place')[1]?.retry_ms, 200);
    await bothServe(running, linesOf(running).length);
  });

  it('take a configuration all together or not at all: from a file, a signal, and an admin', async () => {
    const running = await start();
    const file = join(running.folder, 'hermes.yaml');
    const write = (...ids: string[]): void =>
      writeFileSync(file, JSON.stringify(config({ models: ids.map((id) => ({ ...model(), id })), default_model: ids[0] })));
    const modelsOf = async (): Promise<string[]> => {
      const { text } = await ask(fresh, `${running.base}/v1/models`);
      return (JSON.parse(text) as { data: { id: string }[] }).data.map(({ id }) => id).filter((id) => id !== 'auto');
    };
    const everywhere = async (...wanted: string[]): Promise<void> => {
      for (let time = 0; time < 6; time++) assert.deepEqual(await modelsOf(), wanted);
    };
    await everywhere('m');
    write('m', 'second');
    await until(async () => (await metric(running, 'hermes_config_reloads_total{outcome="ok"}')) === 1, 'the file was seen');
    await everywhere('m', 'second');
    assert.equal(said(running, 'configuration reloaded').length, 1);
    write('m', 'third');
    const reply = await ask(fresh, `${running.base}/admin/reload`, {});
    assert.equal(reply.status, 200, reply.text);
    await everywhere('m', 'third');
    running.kill('SIGHUP');
    await until(() => said(running, 'configuration reloaded').some(({ cause }) => cause === 'signal'), 'the signal was heard');
    await everywhere('m', 'third');
    // What only a worker can find out: no plugin adds this provider.
    // Reloads go one after the other: behind this one, what the watcher saw of the file is over as well.
    await ask(fresh, `${running.base}/admin/reload`, {});
    const good = said(running, 'configuration reloaded').length;
    for (const bad of [{ server: { workers: 'many' } }, { models: [{ ...model(), pricing: { input_per_million: 'much' } }] }]) {
      writeFileSync(file, JSON.stringify(config(bad)));
      const refused = await ask(fresh, `${running.base}/admin/reload`, {});
      assert.equal(refused.status, 400, refused.text);
      await everywhere('m', 'third');
    }
    assert.equal(said(running, 'configuration reloaded').length, good);
    writeFileSync(file, JSON.stringify(config({ server: { workers: 3 } })));
    assert.equal((await ask(fresh, `${running.base}/admin/reload`, {})).status, 200);
    assert.equal(await metric(running, 'hermes_workers'), 3);
  });

  it('are replaced one after the other by SIGUSR2 under load, without one failed request', async () => {
    const running = await start();
    const before = await bothServe(running);
    const kept = new Agent({ keepAlive: true, maxSockets: 100 });
    const results: Result[] = [];
    let going = true;
    const client = async (number: number): Promise<void> => {
      for (let turn = 0; going; turn++) {
        const content = turn % 4 === 0 ? `slow ${number}` : `question ${turn}`;
        results.push(await chat(number % 2 ? kept : fresh, running.base, { messages: user(content), stream: turn % 2 === 0 }));
        await sleep(20);
      }
    };
    const clients = Array.from({ length: 10 }, (_, number) => client(number));
    await sleep(500);
    const from = linesOf(running).length;
    running.kill('SIGUSR2');
    await until(() => said(running, 'the workers are replaced').length === 1, 'the workers were not replaced', 60_000);
    await until(() => [...servers(running, from)].filter((pid) => !before.includes(pid)).length === 2, 'the successors serve');
    going = false;
    await Promise.all(clients);
    const failed = results.filter((result) => !isServed(result));
    assert.deepEqual(failed.slice(0, 3), [], `${failed.length} of ${results.length} failed`);
    assert.deepEqual(before.filter(isAlive), []);
    assert.equal(await metric(running, 'hermes_requests_in_flight'), 0);
    assert.ok(total((await ask(fresh, `${running.base}/metrics`)).text) >= results.length);
    kept.destroy();
  });

  it('finish what they have when their primary is killed, and end', async () => {
    const running = await start();
    const pids = await bothServe(running);
    const calls = upstream.calls.length;
    const streams = Array.from({ length: 4 }, () => chat(fresh, running.base, { messages: user('slow, and alone'), stream: true }));
    await upstream.until(() => upstream.calls.length === calls + 4);
    running.kill('SIGKILL');
    assert.ok((await Promise.all(streams)).every(isServed));
    await until(() => pids.every((pid) => !isAlive(pid)), 'the workers are still there');
  });

  it('do not start where the stores are not shared, or the port is taken, and say it once', async () => {
    const alone = await startInstance(config(), { unready: true });
    assert.equal(await alone.exited, 1);
    assert.match(alone.log(), /server\.workers.*several workers need stores that they share: set REDIS_URL=.* and DATABASE_URL=postgres/);
    const first = await start();
    const env = { REDIS_URL: redis.url, DATABASE_URL: await postgres.createDatabase() };
    const second = await startInstance(config(), { port: first.port, env, unready: true });
    assert.equal(await second.exited, 1);
    assert.equal(second.log().match(/another process listens there/g)?.length, 1, second.log());
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'broken.js'), "export default { name: 'broken', setup() { throw new Error('not today'); } };");
    const broken = await startInstance(config({ pipeline: { plugins_dir: folder } }), { env, unready: true });
    assert.equal(await broken.exited, 1);
    assert.equal(broken.log().match(/not today/g)?.length, 1, broken.log());
  });
});

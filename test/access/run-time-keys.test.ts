import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { RunTimeKeys } from '../../src/access/run-time-keys.ts';
import { run } from '../../src/cli/program.ts';
import { parseRunTimeKey } from '../../src/config/run-time-key.ts';
import { KEY, keepLog, type Reply, type RunningApp, startApp, user } from '../app-kit.ts';
import { openCold } from '../tools/tools-kit.ts';

describe('keys at run time', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hermes-keys-'));
  const database = join(folder, 'hermes.db');
  let app: RunningApp;
  const start = (): Promise<RunningApp> =>
    startApp({ models: ['fast_model', 'other'].map((id) => ({ id, provider: 'simulator' })) }, { env: { DATABASE_URL: `sqlite:///${database}` } });
  const chat = (key: string, more: object = {}): Promise<Reply> => app.chat({ messages: user('hi'), ...more }, { authorization: `Bearer ${key}` });
  const add = (body: object): Promise<Reply> => app.post('/admin/keys', body);
  before(async () => {
    app = await start();
  });
  after(async () => {
    await app.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it('let in at once, may what they say, and are refused once revoked', async () => {
    const made = await add({ id: 'shop', models: ['fast_model'] });
    const key = String(made.json.key);
    assert.deepEqual([made.status, made.json.service, made.json.project, made.json.admin, made.json.source], [201, 'shop', 'shop', false, 'run_time']);
    assert.match(key, /^sk-hermes-[\w-]{43}$/);
    assert.equal((await chat(key)).status, 200);
    assert.equal((await chat(key, { model: 'other' })).json.error?.code, 'model_not_allowed');
    assert.equal((await app.fetch('/admin/keys', { headers: { authorization: `Bearer ${key}` } })).status, 403);
    assert.equal((await app.fetch('/admin/keys/shop', { method: 'DELETE' })).status, 200);
    assert.equal((await chat(key)).json.error?.code, 'invalid_api_key');
    assert.equal((await app.fetch('/admin/keys/shop', { method: 'DELETE' })).status, 404);
    assert.equal((await add({ id: 'shop' })).status, 201);
    assert.equal((await chat(key)).status, 401);
  });

  it('are listed beside those of the configuration, and nobody sees a key or a hash', async () => {
    const { key } = (await add({ id: 'listed', expires: '2090-01-01' })).json;
    const list = await app.fetch('/admin/keys');
    const rows = list.json.data as { id: string; source: string; created_by?: string }[];
    assert.deepEqual(rows.find(({ id }) => id === 'API_KEY')?.source, 'configuration');
    assert.deepEqual(rows.find(({ id }) => id === 'listed')?.created_by, 'API_KEY');
    assert.doesNotMatch(list.text, /sk-|sha256|[0-9a-f]{64}/);
    assert.ok(!readFileSync(database).includes(String(key)), 'the store holds the key');
    assert.doesNotMatch(JSON.stringify(app.lines), new RegExp(String(key)));
  });

  it('tell what of them allows nothing', async () => {
    const { status, json } = await add({ id: 'typo', models: ['fast_modl'], tools: ['order.*'] });
    assert.deepEqual(
      [status, json.warnings],
      [201, ['models: `fast_modl` is not a model of the registry (did you mean `fast_model`?)', 'tools: `order.*` fits no tool']],
    );
    assert.equal((await add({ id: 'right', models: ['fast_model', 'o*'] })).json.warnings, undefined);
  });

  it('say what is wrong with them', async () => {
    for (const [body, param] of [
      [{}, 'id'],
      [{ id: 'x', modles: [] }, 'modles'],
      [{ id: 'x', expires: 'soon' }, 'expires'],
      [{ id: 'x', key_env: 'PATH' }, 'key_env'],
      [{ id: 'API_KEY' }, 'id'],
      [{ id: 'listed' }, 'id'],
    ] as const) {
      const reply = await add(body);
      assert.deepEqual([reply.status, reply.json.error?.param], [400, param], reply.text);
    }
    assert.match((await app.fetch('/admin/keys/API_KEY', { method: 'DELETE' })).json.error?.message ?? '', /stands in the configuration/);
  });

  it('are refused from their date on, and outlive a restart', async () => {
    const old = (await add({ id: 'old', expires: '2020-01-01' })).json.key;
    const lasting = String((await add({ id: 'lasting' })).json.key);
    assert.match((await chat(String(old))).json.error?.message ?? '', /expired/);
    await app.stop();
    app = await start();
    assert.equal((await chat(lasting)).status, 200);
  });

  it('are added, listed and revoked from the command line', async (test) => {
    process.env.ADMIN_API_KEY = KEY;
    const hermes = async (...words: string[]): Promise<string> => {
      let said = '';
      const write = test.mock.method(process.stdout, 'write', (text: string) => {
        said += text;
        return true;
      });
      const code = await run(['node', 'hermes-cli', 'key', ...words, '--url', app.base]);
      write.mock.restore();
      assert.equal(code, 0);
      return said;
    };
    try {
      const key = /sk-hermes-\S+/.exec(await hermes('add', 'cli', '--models', 'fast_model,other', '--service', 'shop'))?.[0] ?? '';
      assert.equal((await chat(key, { model: 'other' })).status, 200);
      assert.match(await hermes('list'), /^cli +run_time +shop +shop +fast_model, other +good$/m);
      assert.match(await hermes('revoke', 'cli'), /revoked cli/);
      assert.equal((await chat(key)).status, 401);
    } finally {
      delete process.env.ADMIN_API_KEY;
    }
  });
});

describe('several instances', () => {
  it('know of a change within a second, and read once a second at most', async () => {
    const cold = await openCold();
    let reads = 0;
    let now = 1_000_000;
    const getValue = (name: string) => {
      reads++;
      return cold.getValue(name);
    };
    const counted = { getValue, setValue: cold.setValue.bind(cold), listValues: cold.listValues.bind(cold) };
    const environment = { now: () => now, uuid: () => crypto.randomUUID(), random: Math.random };
    const [one, two] = [0, 1].map(() => new RunTimeKeys({ cold: counted, environment, log: keepLog([]) })) as [RunTimeKeys, RunTimeKeys];
    await two.find('unknown');
    const { key } = await one.add(parseRunTimeKey({ id: 'a' }), 'me');
    assert.equal((await one.find(key))?.id, 'a');
    now += 1000;
    assert.equal((await two.find(key))?.id, 'a');
    reads = 0;
    for (let index = 0; index < 500; index++) await two.find(index % 2 ? key : `guess-${index}`);
    assert.equal(reads, 0);
    now += 1000;
    await Promise.all(Array.from({ length: 500 }, () => two.find(key)));
    assert.equal(reads, 1);
    await one.revoke('a');
    // The wall clock is set back: nobody waits for it to catch up.
    now -= 7_200_000;
    assert.equal(await two.find(key), undefined);
    await cold.close();
  });

  it('go on with what they know while the store is away', async () => {
    const cold = await openCold();
    let away = false;
    let now = 1_000_000;
    const getValue = (key: string) => (away ? Promise.reject(new Error('away')) : cold.getValue(key));
    const keys = new RunTimeKeys({
      cold: { getValue, setValue: cold.setValue.bind(cold), listValues: cold.listValues.bind(cold) },
      environment: { now: () => now, uuid: () => crypto.randomUUID(), random: Math.random },
      log: keepLog([]),
    });
    const { key } = await keys.add(parseRunTimeKey({ id: 'a' }), 'me');
    assert.equal((await keys.find(key))?.id, 'a');
    away = true;
    now += 5000;
    assert.equal((await keys.find(key))?.id, 'a');
    await cold.close();
  });
});

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type Reply, type RunningApp, startApp, user } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { SECRET, sign } from './access-kit.ts';

const BODY = JSON.stringify({ messages: user('hello') });

describe('signed requests', () => {
  let upstream: FakeUpstream;
  let app: RunningApp;
  before(async () => {
    upstream = await createFakeUpstream();
    app = await startApp(
      {
        models: [
          { id: 'fast_model', provider: 'simulator' },
          { id: 'vendor', provider: 'openai', model_name: 'm', api_base: upstream.url, api_key_env: 'UP_KEY' },
        ],
        passthrough: { upstream: 'vendor' },
        auth: { signatures: [{ service: 'billing', secret_env: 'BILLING_SECRET', models: ['fast_model'] }] },
      },
      { env: { BILLING_SECRET: SECRET, UP_KEY: 'sk-up' } },
    );
  });
  after(async () => {
    await app.stop();
    await upstream.close();
  });
  const ask = async (method: string, path: string, headers: Record<string, string>, body?: string): Promise<{ status: number; json: Reply['json'] }> => {
    const response = await fetch(app.base + path, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body }),
    });
    return { status: response.status, json: (await response.json().catch(() => ({}))) as Reply['json'] };
  };

  it('are served where their body is read, once', async () => {
    const headers = sign({ body: BODY });
    assert.equal((await ask('POST', '/v1/chat/completions', headers, BODY)).status, 200);
    const again = await ask('POST', '/v1/chat/completions', headers, BODY);
    assert.deepEqual([again.status, again.json.error?.code], [401, 'invalid_signature']);
    assert.equal((await ask('POST', '/v1/chat/completions', sign({ digest: 'UNSIGNED-PAYLOAD' }), BODY)).status, 401, 'unsigned is for what is passed through');
    assert.equal((await ask('POST', '/v1/chat/completions', sign({ body: 'else' }), BODY)).status, 401);
  });
  it('have a trace also where their body cannot be used, and none where the signature does not hold', async () => {
    const body = '{"messages":';
    const before = app.lines.length;
    assert.equal((await ask('POST', '/v1/chat/completions', sign({ body }), body)).status, 400);
    assert.equal((await ask('POST', '/v1/chat/completions', sign({ body: 'else' }), body)).status, 400);
    const [good, bad] = app.lines.slice(before).filter(({ message }) => message === 'request');
    assert.deepEqual([good?.key, good?.service, bad?.key], ['signature:billing', 'billing', undefined]);
    assert.equal((await app.fetch(`/admin/traces/${good?.request_id}`)).status, 200);
    assert.equal((await app.fetch(`/admin/traces/${bad?.request_id}`)).status, 404);
  });
  it('sign an empty body where there is none', async () => {
    const list = await ask('GET', '/v1/models', sign({ method: 'GET', path: '/v1/models' }));
    assert.equal(list.status, 200);
    assert.deepEqual((list.json.data as { id: string }[]).map(({ id }) => id).sort(), ['auto', 'fast_model']);
    assert.equal((await ask('GET', '/v1/models', sign({ method: 'GET', path: '/v1/models', digest: 'UNSIGNED-PAYLOAD' }))).status, 401);
  });
  it('may leave their payload unsigned where it is passed through', async () => {
    const path = '/v1/embeddings?x=1';
    const body = JSON.stringify({ model: 'fast_model', input: 'x' });
    const passed = await ask('POST', path, sign({ path, digest: 'UNSIGNED-PAYLOAD' }), body);
    assert.notEqual(passed.status, 401, JSON.stringify(passed.json));
    assert.equal((await ask('POST', path, sign({ path, body }), body)).status, 401, 'the body is not read there');
    const sent = upstream.calls.at(-1);
    assert.equal(sent?.headers.authorization, 'Bearer sk-up');
    assert.ok(!Object.keys(sent?.headers ?? {}).some((name) => name.startsWith('x-hermes-')), 'no signature leaves');
  });
  it('are never admin', async () => {
    const headers = sign({ method: 'GET', path: '/admin/costs' });
    assert.equal((await ask('GET', '/admin/costs', headers)).status, 403);
    assert.equal((await ask('GET', '/admin/costs', sign({ method: 'GET', path: '/admin/costs', secret: 'another' }))).status, 401);
  });
});

describe('a refused key in the running product', () => {
  it('is one line of the audit, with the request id and the address, and a metric', async () => {
    const app = await startApp({});
    const { status, headers } = await app.chat({ messages: user('hello') }, { authorization: 'Bearer sk-guess-0123456789' });
    assert.equal(status, 401);
    const [line, ...more] = app.lines.filter(({ message }) => message.startsWith('a credential was refused'));
    assert.deepEqual([line?.level, line?.request_id, line?.kind], ['warn', headers.get('x-request-id'), 'key']);
    assert.match(String(line?.address), /127\.0\.0\.1/);
    assert.equal(more.length, 0);
    assert.ok(!JSON.stringify(app.lines).includes('sk-guess'));
    assert.match(await fetch(`${app.base}/metrics`).then((reply) => reply.text()), /hermes_auth_failures_total\{kind="key"\} 1/);
    await app.stop();
  });
});

describe('hermes-cli', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hermes-key-'));
  const file = join(folder, 'hermes.yaml');
  after(() => rmSync(folder, { recursive: true, force: true }));
  const cli = (...args: string[]): Promise<{ code: number; out: string; err: string }> =>
    new Promise((resolve) => {
      const env = { PATH: process.env.PATH ?? '', HERMES_CONFIG: file, API_KEY: 'sk-test-3f9c1d7e5a2b48c6' };
      execFile(process.execPath, ['--import', 'tsx', 'src/main.ts', ...args], { env }, (error, out, err) =>
        resolve({ code: error === null ? 0 : Number(error.code), out, err }),
      );
    });

  it('key new makes a key that its YAML lets in', async () => {
    const { code, out, err } = await cli('key', 'new', 'support', '--project', 'shop', '--models', 'fast_model,mid_*', '--expires', '2099-01-31');
    assert.equal(code, 0, err);
    const key = /^key +(sk-hermes-[\w-]{43})$/m.exec(out)?.[1] ?? assert.fail(out);
    const yaml = out.slice(out.indexOf('auth:'));
    assert.match(yaml, /^ {4}- id: support\n {6}sha256: [0-9a-f]{64}\n {6}service: support\n {6}project: shop\n/m);
    assert.ok(!yaml.includes(key));
    const { parse } = await import('yaml');
    const app = await startApp({ ...(parse(yaml) as object) });
    assert.equal((await app.chat({ messages: user('hello') }, { authorization: `Bearer ${key}` })).status, 200);
    await app.stop();
  });
  it('models test asks every upstream for one token, once', async () => {
    const upstream = await createFakeUpstream();
    upstream.on('down', (reply) => reply.error(401));
    const openai = { provider: 'openai', api_base: upstream.url, api_key_env: 'API_KEY' };
    writeFileSync(
      file,
      JSON.stringify({
        models: [
          { id: 'good', ...openai, model_name: 'm', pricing: { input_per_million: 1, output_per_million: 1 } },
          { id: 'bad', ...openai, model_name: 'down' },
          { id: 'pool', failover: { upstreams: [{ target: 'good' }, { target: 'bad' }] } },
          { id: 'local', provider: 'simulator' },
        ],
      }),
    );
    const { code, out, err } = await cli('models', 'test');
    assert.equal(code, 1, err);
    assert.match(out, /^good +good +m +ok +\d+ ms +\d+ +\$0\.0000/m);
    assert.match(out, /^bad +bad +down +FAILED +\d+ ms +0 +unpriced +\S/m);
    assert.match(out, /^local +local +local +ok/m);
    assert.match(out, /1 of 3 upstreams do not answer/);
    assert.equal(upstream.calls.length, 2);
    assert.ok(upstream.calls.every(({ body }) => (body.max_tokens ?? body.max_completion_tokens) === 1));
    await upstream.close();
  });
});

import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { KEY, type RunningApp, startApp } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';

describe('paths', () => {
  let app: RunningApp;
  let upstream: FakeUpstream;
  before(async () => {
    upstream = await createFakeUpstream({ strict: false });
    app = await startApp(
      {
        providers: { up: { type: 'openai', api_base: upstream.url, api_key_env: 'UP_KEY' } },
        passthrough: { upstream: 'up' },
        metrics: { token_env: 'METRICS_TOKEN' },
        auth: {
          keys: [
            { id: 'plain', key_env: 'PLAIN_KEY' },
            { id: 'any', key_env: 'ANY_KEY', passthrough: ['*'] },
          ],
        },
      },
      { env: { UP_KEY: 'sk-up', METRICS_TOKEN: 'metrics-token-1', PLAIN_KEY: 'sk-plain-0123456789abcdef', ANY_KEY: 'sk-any-0123456789abcdef' } },
    );
  });
  after(async () => {
    await app.stop();
    await upstream.close();
  });

  /** The path as it stands: fetch would resolve its dots. */
  const ask = (
    path: string,
    { method = 'GET', key = KEY }: { method?: string; key?: string } = {},
  ): Promise<{ status: number; text: string; allow: string | undefined }> =>
    new Promise((resolve, reject) => {
      const request = httpRequest({ port: app.app.port, host: '127.0.0.1', path, method, headers: { authorization: `Bearer ${key}` } }, (response) => {
        let text = '';
        response.on('data', (data) => {
          text += data;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text, allow: response.headers.allow }));
      });
      request.on('error', reject).end();
    });

  it('that hermes owns never reach the upstream, however they are written', async () => {
    const spellings = [
      '/v1/admin/../../admin/costs',
      '//admin//upstreams',
      '/%61dmin/upstreams',
      '/v1/%2e%2e/admin/upstreams',
      '/v1/./models',
      '/v1//models',
      '/v1/models/',
      '/V1/../v1/models',
      '/v1\\models',
      '/v1/%6dodels',
      '/v1/x/%2E%2e/models',
    ];
    for (const path of spellings) {
      const { status, text } = await ask(path);
      assert.ok(status === 200 || status === 404, `${path}: ${status} ${text.slice(0, 80)}`);
    }
    for (const path of [
      '/v1//chat/completions',
      '/v1/chat/./completions',
      '/v1/chat/%63ompletions',
      '/v1/x/../chat/completions',
      '/v1/chat/completions/',
      '/v1/chat/completions?x=1',
    ])
      assert.equal((await ask(path)).status, 405, path);
    // No host is named by two slashes at the beginning.
    for (const path of ['//v1/models', '/\\v1/models']) assert.equal((await ask(path)).status, 200, path);
    for (const path of ['//zzz/v1/models', '///zzz//healthz', '/\\zzz/admin/upstreams']) assert.equal((await ask(path)).status, 404, path);
    assert.equal(upstream.calls.length, 0);
  });
  it('with encoded separators are refused: an upstream might decode them', async () => {
    for (const path of [
      '/v1/chat%2fcompletions',
      '/v1/embeddings/..%2Fchat/completions',
      '/v1/embeddings%5c..%5cfiles',
      '/v1/embeddings%00',
      '/v1/files/%2e%2e%2forganization/keys',
    ])
      assert.ok([400, 404].includes((await ask(path)).status), path);
    assert.equal(upstream.calls.length, 0);
    assert.equal((await ask('/v1/embeddings?file=a%2fb')).status, 200, 'a query is not a path');
  });
  it("of the vendor's account are nobody's, not even an admin's", async () => {
    for (const path of ['/v1/organization/api_keys', '/v1/organization', '/v1/%6frganization/users', '/v1/embeddings/../organization/users']) {
      const before = upstream.calls.length;
      assert.equal((await ask(path)).status, 403, path);
      assert.equal((await ask(path, { key: 'sk-any-0123456789abcdef' })).status, 403, path);
      assert.equal(upstream.calls.length, before);
    }
  });
  it('that a key does not list are 403; the stateless ones are open to all', async () => {
    const key = 'sk-plain-0123456789abcdef';
    for (const path of ['/v1/files', '/v1/batches/b1', '/v1/vector_stores', '/v1/fine_tuning/jobs', '/v1/embeddingsX'])
      assert.equal((await ask(path, { key })).status, 403, path);
    for (const path of ['/v1/embeddings', '/v1/images/generations', '/v1/audio/speech']) assert.equal((await ask(path, { key })).status, 200, path);
    assert.equal((await ask('/v1/files', { key: 'sk-any-0123456789abcdef' })).status, 200);
    assert.equal((await ask('/v1/files')).status, 200, 'an admin may');
  });
  it('answer HEAD where they answer GET, and name what they take', async () => {
    for (const path of ['/healthz', '/readyz', '/v1/models', '/v1/models/fast_model']) {
      const head = await ask(path, { method: 'HEAD' });
      assert.deepEqual([head.status, head.text], [200, ''], path);
    }
    assert.equal((await ask('/v1/models/nobody', { method: 'HEAD' })).status, 404);
    assert.deepEqual(await ask('/v1/models', { method: 'DELETE' }).then(({ status, allow }) => [status, allow]), [405, 'GET']);
    assert.deepEqual(await ask('/v1/chat/completions', { method: 'OPTIONS' }).then(({ status, allow }) => [status, allow]), [405, 'POST']);
    assert.equal((await ask('/nothing/here')).status, 404);
    assert.equal((await ask('*', { method: 'OPTIONS' })).status, 404);
  });
  it('of the metrics need their token when one is set', async () => {
    assert.equal((await ask('/metrics')).status, 401);
    assert.equal((await ask('/metrics', { key: 'metrics-token-12' })).status, 401);
    const { status, text } = await ask('/metrics', { key: 'metrics-token-1' });
    assert.equal(status, 200);
    assert.match(text, /hermes_requests_in_flight/);
  });
  it('of administration need an admin key', async () => {
    for (const path of ['/admin/upstreams', '/admin/sessions', '/debug/route'])
      assert.equal((await ask(path, { key: 'sk-plain-0123456789abcdef', method: path === '/debug/route' ? 'POST' : 'GET' })).status, 403, path);
    assert.equal((await ask('/admin/upstreams', { key: 'nobody' })).status, 401);
  });
});

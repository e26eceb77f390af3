import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { type ClientRequest, request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { KEY } from '../app-kit.ts';
import { HELD_KEY, startVendor, type Vendor } from './vendor.ts';

const until = async (condition: () => boolean, ms = 4000): Promise<void> => {
  for (const end = performance.now() + ms; !condition(); await new Promise((done) => setTimeout(done, 5)))
    assert.ok(performance.now() < end, `not within ${ms} ms: ${condition}`);
};

describe('the pass-through', () => {
  let vendor: Vendor;
  before(async () => {
    vendor = await startVendor();
  });
  after(() => vendor.close());

  it("builds the upstream's headers: no credential, account or proxy of the caller's goes along", async () => {
    const { status, headers } = await vendor.app.fetch('/v1/embeddings?x=1', {
      method: 'POST',
      body: '{"model":"text-embedding-3-small","input":"a"}',
      headers: {
        'content-type': 'application/json',
        'x-api-key': 'sk-callers',
        'api-key': 'sk-callers',
        cookie: 'session=callers',
        'openai-organization': 'org-callers',
        'openai-project': 'proj-callers',
        'x-forwarded-for': '10.0.0.9',
        'x-hermes-user-level': 'vip',
        'x-real-ip': '10.0.0.9',
        'openai-beta': 'assistants=v2',
        'x-custom': 'kept',
      },
    });
    assert.equal(status, 200);
    assert.ok(headers.get('x-request-id'));
    const sent = vendor.last();
    assert.equal(sent.headers.authorization, 'Bearer sk-upstream-secret');
    assert.deepEqual([sent.headers['openai-beta'], sent.headers['x-custom'], sent.headers['x-ours']], ['assistants=v2', 'kept', '1']);
    const all = JSON.stringify(sent.headers);
    assert.doesNotMatch(all, /callers|10\.0\.0\.9|x-hermes|sk-test/);
    assert.equal(sent.url, '/v1/embeddings?x=1&tenant=hermes');
  });

  it('says what hermes did with it, in its answers and in its refusals', async () => {
    const told = async (path: string, init: RequestInit): Promise<unknown[]> => {
      const { status, headers } = await vendor.app.fetch(path, { ...init, headers: { 'x-hermes-request-id': 'mine', ...init.headers } });
      assert.match(headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/);
      return [status, ...['request-id', 'route', 'upstream', 'attempts', 'tier'].map((name) => headers.get(`x-hermes-${name}`))];
    };
    const embed = { method: 'POST', body: '{"model":"embed","input":"a"}' };
    assert.deepEqual(await told('/v1/embeddings', embed), [200, 'mine', 'passthrough', 'up', '1', null]);
    assert.deepEqual(await told('/v1/embeddings', { ...embed, headers: { authorization: 'Bearer wrong' } }), [401, 'mine', null, null, null, null]);
    assert.deepEqual(await told('/v1/a%2fb', {}), [400, 'mine', null, null, null, null]);
  });

  it('tells the model that answered in log, trace and metrics, where the registry knows it', async () => {
    const { headers } = await vendor.app.post('/v1/embeddings?told=1', { model: 'embed', input: 'a' });
    const id = headers.get('x-request-id');
    const line = vendor.app.lines.find(({ message, request_id }) => message === 'request' && request_id === id);
    const trace = await vendor.app.fetch(`/admin/traces/${id}`);
    assert.deepEqual([line?.model, line?.attempts, trace.json.model], ['embed', 1, 'embed']);
    const metrics = await vendor.app.fetch('/metrics');
    assert.match(metrics.text, /hermes_requests_total\{[^}]*model="embed"[^}]*\} 1\n/);
  });

  it('relays a binary download and the status and words of the upstream', async () => {
    const response = await fetch(`${vendor.app.base}/v1/audio/content`, { headers: { authorization: `Bearer ${KEY}` } });
    assert.deepEqual(Buffer.from(await response.arrayBuffer()), vendor.download);
    assert.deepEqual([response.headers.get('content-type'), response.headers.get('x-vendor')], ['audio/mpeg', 'kept']);
    assert.deepEqual([response.headers.get('set-cookie'), response.headers.get('x-hop')], [null, null]);
    const teapot = await vendor.app.fetch('/v1/images/teapot');
    assert.deepEqual([teapot.status, teapot.text], [418, 'short and stout']);
  });

  it('ends what broke off up there, and is there for the next', async () => {
    const broken = await vendor.app.fetch('/v1/images/cut').then(
      ({ status }) => String(status),
      () => 'closed',
    );
    assert.ok(broken === 'closed' || broken === '502', broken);
    assert.equal((await vendor.app.fetch('/v1/embeddings')).status, 200);
  });

  it("holds a JSON request's model to those of the key", async () => {
    const ask = (model: string) => vendor.app.post('/v1/embeddings', { model, input: 'x' }, { authorization: `Bearer ${HELD_KEY}` });
    const count = vendor.seen.length;
    for (const model of ['text-embedding-3-small', 'embed', 'embed-alias', 'gpt-4o'])
      assert.equal((await ask(model)).json.error?.code, 'model_not_allowed', model);
    assert.equal(vendor.seen.length, count);
    const text = '{"model":"fast_model","input":"x","big":9007199254740993}';
    assert.equal((await vendor.app.post('/v1/embeddings', text, { authorization: `Bearer ${HELD_KEY}` })).status, 200);
    assert.equal(vendor.last().sha256, createHash('sha256').update(text).digest('hex'), 'its bytes are the same');
  });
});

describe('uploads through the pass-through', () => {
  let vendor: Vendor;
  before(async () => {
    vendor = await startVendor();
  });
  after(() => vendor.close());

  const begin = (path: string, headers: OutgoingHttpHeaders): ClientRequest =>
    httpRequest({ port: vendor.app.app.port, host: '127.0.0.1', agent: false, method: 'POST', path, headers: { authorization: `Bearer ${KEY}`, ...headers } });

  it('relays an upload of 50 MB byte for byte, without holding what the upstream does not take', async () => {
    const piece = randomBytes(1 << 20);
    const hash = createHash('sha256');
    const request = begin('/v1/audio/transcriptions', { 'content-type': 'application/octet-stream', 'transfer-encoding': 'chunked' });
    const answered = new Promise<IncomingMessage>((resolve, reject) => request.once('response', resolve).once('error', reject));
    let written = 0;
    const write = (left: number): void => {
      if (left === 0) return void request.end();
      hash.update(piece);
      written += piece.length;
      if (request.write(piece)) setImmediate(write, left - 1);
      else request.once('drain', () => write(left - 1));
    };
    vendor.stalled = true;
    const before = vendor.received();
    write(50);
    await until(() => vendor.received() > before);
    await new Promise((done) => setTimeout(done, 400));
    // Kernel buffers of two connections; nothing else may take it.
    assert.ok(written < 30 << 20, `${written >> 20} MB were taken while the upstream read nothing`);
    vendor.stalled = false;
    const response = await answered;
    response.resume();
    assert.equal(response.statusCode, 200);
    assert.deepEqual([vendor.last().bytes, vendor.last().sha256], [50 << 20, hash.digest('hex')]);
  });

  it('cuts an upload beyond its own limit, announced or not', async () => {
    const announced = await vendor.app
      .fetch('/v1/embeddings', { method: 'POST', body: Buffer.alloc(61 << 20), headers: { 'content-type': 'application/octet-stream' } })
      .catch(() => ({ status: 413 }));
    assert.equal(announced.status, 413);
    const streamed = await new Promise<number | string>((resolve) => {
      const request = begin('/v1/embeddings', { 'transfer-encoding': 'chunked' }).on('response', (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      });
      request.on('error', () => resolve('closed'));
      const piece = Buffer.alloc(1 << 20);
      const write = (left: number): void => {
        if (left === 0 || request.destroyed) return void request.end();
        if (request.write(piece)) setImmediate(write, left - 1);
        else request.once('drain', () => write(left - 1));
      };
      write(64);
    });
    assert.ok(streamed === 413 || streamed === 'closed', String(streamed));
    assert.equal((await vendor.app.chat({ messages: [{ role: 'user', content: 'still here' }] })).status, 200);
  });

  it('stops the upstream call when the client leaves', async () => {
    const request = begin('/v1/embeddings', { 'content-length': '1000' });
    request.on('error', () => undefined).write('half');
    await until(() => vendor.running === 1);
    request.destroy();
    await until(() => vendor.running === 0);
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { KEY, type RunningApp, startApp, user } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { exchange, head, hexSize } from './raw-socket.ts';

describe('a request that two readers could understand in two ways', () => {
  let app: RunningApp;
  let upstream: FakeUpstream;
  before(async () => {
    upstream = await createFakeUpstream();
    app = await startApp(
      { models: [{ id: 'm', provider: 'openai', model_name: 'm', api_base: upstream.url, api_key_env: 'UP_KEY' }] },
      { env: { UP_KEY: 'sk-up' } },
    );
  });
  after(async () => {
    await app.stop();
    await upstream.close();
  });

  const body = JSON.stringify({ messages: user('smuggled') });
  const chunked = `${hexSize(body)}\r\n${body}\r\n0\r\n\r\n`;
  const inner = head([`Content-Length: ${body.length}`]) + body;
  const cases: Record<string, string> = {
    'both framings, length first': `${head([`Content-Length: ${body.length}`, 'Transfer-Encoding: chunked'])}0\r\n\r\n${inner}`,
    'both framings, chunked first': head(['Transfer-Encoding: chunked', 'Content-Length: 4']) + chunked,
    'two lengths that differ': head([`Content-Length: ${body.length}`, 'Content-Length: 5']) + body,
    'a list of lengths': head([`Content-Length: ${body.length}, 5`]) + body,
    'a signed length': head([`Content-Length: +${body.length}`]) + body,
    'a length in hexadecimal': head([`Content-Length: 0x${body.length.toString(16)}`]) + body,
    'an unknown coding': head(['Transfer-Encoding: xchunked']) + chunked,
    'chunked under another coding': head(['Transfer-Encoding: chunked, identity']) + chunked,
    'chunked with a form feed': head(['Transfer-Encoding: \fchunked']) + chunked,
    'a space before the colon': head(['Transfer-Encoding : chunked']) + chunked,
    'a folded header':
      head(['X-Folded: a', ' Transfer-Encoding: chunked', `Content-Length: ${body.length}`]).replace('X-Folded: a\r\n ', 'Transfer-Encoding:\r\n ') + body,
    'a bad chunk size': `${head(['Transfer-Encoding: chunked'])}zz\r\n${body}\r\n0\r\n\r\n`,
    'a negative chunk size': `${head(['Transfer-Encoding: chunked'])}-1\r\n${body}\r\n0\r\n\r\n`,
    'a chunk size beyond 64 bits': `${head(['Transfer-Encoding: chunked'])}fffffffffffffffff\r\n${body}\r\n0\r\n\r\n`,
    'a chunk longer than its size': `${head(['Transfer-Encoding: chunked'])}5\r\n${body}\r\n0\r\n\r\n`,
    'bare line feeds in chunks': head(['Transfer-Encoding: chunked']) + chunked.replaceAll('\r\n', '\n'),
    'a bare carriage return in a header': head(['X-Odd: a\rTransfer-Encoding: chunked', `Content-Length: ${body.length}`]) + body,
    'a null byte in a header': head(['X-Odd: a\u0000b', `Content-Length: ${body.length}`]) + body,
    'no Host': (head([`Content-Length: ${body.length}`]) + body).replace('Host: hermes\r\n', ''),
    'two Hosts': head(['Host: other', `Content-Length: ${body.length}`]) + body,
    'another protocol': (head([`Content-Length: ${body.length}`]) + body).replace('HTTP/1.1', 'HTTP/3.7'),
  };
  for (const [name, payload] of Object.entries(cases)) {
    it(`is refused once, and nothing of it reaches a model: ${name}`, async () => {
      const before = upstream.calls.length;
      const raw = await exchange(app.app.port, Buffer.from(payload, 'latin1'), 150);
      const statuses = raw.statuses();
      assert.ok(statuses.length <= 1 && statuses.every((status) => [400, 411, 431, 501, 505].includes(status)), `${statuses} ${raw.text.slice(0, 80)}`);
      assert.equal(upstream.calls.length, before, 'it reached the upstream');
    });
  }
  it('is served when it is honest: chunked with extensions and a trailer, and two in a row', async () => {
    const extended = `${hexSize(body)};name="va\tlue"\r\n${body}\r\n0;last\r\nX-Trailer: 1\r\n\r\n`;
    const raw = await exchange(app.app.port, head(['Transfer-Encoding: chunked']) + extended + inner, 500);
    assert.deepEqual(raw.statuses(), [200, 200]);
  });
  it('takes nothing along that stands behind it', async () => {
    const hostless = (head([`Content-Length: ${body.length}`]) + body).replace('Host: hermes\r\n', '');
    const twoHosts = head(['Host: other', `Content-Length: ${body.length}`]) + body;
    for (const refused of [hostless, twoHosts]) {
      const before = upstream.calls.length;
      const raw = await exchange(app.app.port, refused + inner + inner, 150);
      assert.deepEqual(raw.statuses(), [400]);
      assert.equal(upstream.calls.length, before, 'what stood behind it reached the upstream');
    }
  });
  it('gets an answer that names no internals', async () => {
    const raw = await exchange(app.app.port, 'NONSENSE\r\n\r\n');
    assert.match(raw.text, /^HTTP\/1\.1 400 Bad Request\r\n[\s\S]*"type":"invalid_request_error"/);
    assert.doesNotMatch(raw.text, /HPE_|llhttp|node/i);
    assert.ok(!raw.text.includes(KEY));
  });
  it('with headers beyond every measure is 431', async () => {
    assert.deepEqual((await exchange(app.app.port, head([`X-Big: ${'a'.repeat(100_000)}`, 'Content-Length: 0']))).statuses(), [431]);
  });
});

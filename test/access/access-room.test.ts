import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import { createAccessRoom } from '../../src/access/access-room.ts';
import { readCredential } from '../../src/access/credential.ts';
import { toPrincipal } from '../../src/access/keys.ts';
import type { Config } from '../../src/contracts/config.ts';
import { HermesError } from '../../src/contracts/errors.ts';
import type { Ask, Caller, Credential } from '../../src/contracts/exchange.ts';
import createMemoryStore from '../../src/stores/hot/memory.ts';
import { allows } from '../../src/wire/patterns.ts';
import { makeClock, noMetrics } from '../accounting/accounting-kit.ts';
import { makeConfig } from '../config/make-config.ts';
import { recordLog } from '../stores/fixture.ts';
import { SECRET, sign, type ToSign } from './access-kit.ts';

const NEW = 'sk-new-0123456789abcdefghijkl';
const OLD = 'sk-old-0123456789abcdefghijkl';
const config = makeConfig(
  {
    auth: {
      keys: [
        {
          id: 'support',
          key_env: 'NEW_KEY',
          service: 'support',
          services: ['support', 'kb'],
          project: 'shop',
          projects: ['shop', 'lab-*'],
          user_levels: ['vip'],
          priorities: ['normal', 'batch'],
        },
        { id: 'support-old', sha256: createHash('sha256').update(OLD).digest('hex').toUpperCase(), service: 'support', expires: '2026-12-31' },
      ],
      signatures: [{ service: 'billing', secret_env: 'BILLING_SECRET', max_skew_seconds: 60, models: ['fast_*'], tools: ['order.*'] }],
    },
  },
  { NEW_KEY: NEW, BILLING_SECRET: SECRET },
);

function openRoom(hot = createMemoryStore({ keyPrefix: '', log: recordLog(), environment: makeClock(0) })) {
  const clock = makeClock('2026-11-30T12:00:00Z');
  const log = recordLog();
  const counted: Record<string, string>[] = [];
  const metrics = { ...noMetrics, counter: () => ({ inc: (labels: Record<string, string>) => void counted.push(labels) }) };
  const room = createAccessRoom({ hot, log, metrics, environment: clock });
  const ask = async (credential: Credential | undefined, over: object = {}, used: Config = config) =>
    room.authenticate(used, credential, {
      method: 'POST',
      path: '/v1/chat/completions',
      body: undefined,
      remoteAddress: '192.0.2.7',
      requestId: 'r1',
      ...over,
    });
  const withKey = (key: string, over: object = {}) => ask({ kind: 'key', key }, over);
  const signed = (to: ToSign, over: object = {}) => ask(readCredential(sign({ at: clock.at, ...to })), { body: Buffer.from(to.body ?? ''), ...over });
  return { clock, log, counted, room, ask, withKey, signed };
}
const refused = (promise: Promise<unknown>, code: string, message = /./): Promise<void> =>
  assert.rejects(promise, (thrown) => thrown instanceof HermesError && thrown.code === code && message.test(thrown.message));

describe('keys', () => {
  it('let in by their hash, two of one service at once', async () => {
    const { withKey } = openRoom();
    assert.equal((await withKey(NEW)).id, 'support');
    const old = await withKey(OLD);
    assert.deepEqual([old.id, old.service, old.project, old.admin], ['support-old', 'support', 'support', false]);
  });
  it('are refused from the date on which they expire', async () => {
    const { clock, withKey } = openRoom();
    clock.at = Date.parse('2026-12-31') - 1;
    await withKey(OLD);
    clock.at += 1;
    await refused(withKey(OLD), 'invalid_api_key', /expired/);
    await withKey(NEW);
  });
  it('are refused alike however near they come', async () => {
    const { withKey, ask } = openRoom();
    for (const key of ['', 'x', NEW.slice(0, -1), `${NEW} `, NEW.toUpperCase(), createHash('sha256').update(OLD).digest('hex'), 'x'.repeat(100_000)])
      await refused(withKey(key), 'invalid_api_key', /^Incorrect API key/);
    await refused(ask(undefined), 'invalid_api_key', /did not provide/);
  });
  it('come as a bearer, as x-api-key or as api-key', () => {
    assert.deepEqual(readCredential({ authorization: 'bearer  a b ' }), { kind: 'key', key: 'a b' });
    assert.deepEqual(readCredential({ 'x-api-key': 'k' }), { kind: 'key', key: 'k' });
    assert.deepEqual(readCredential({ 'api-key': 'k', authorization: 'Basic eDp5' }), { kind: 'key', key: 'k' });
    for (const headers of [{}, { authorization: 'Bearer ' }, { authorization: 'Basic eDp5' }, { 'x-api-key': '' }])
      assert.equal(readCredential(headers), undefined);
  });
});

describe('signatures', () => {
  it('let a service in, with what its entry allows, never as admin', async () => {
    const { signed } = openRoom();
    const principal = await signed({ body: '{"a":1}' });
    assert.deepEqual(
      [principal.id, principal.service, principal.services, principal.project, principal.models, principal.tools, principal.admin],
      ['signature:billing', 'billing', ['billing'], 'billing', ['fast_*'], ['order.*'], false],
    );
  });
  it('cover time, nonce, method, path with its query, and body', async () => {
    const { signed, ask, clock } = openRoom();
    await refused(signed({ body: 'a' }, { body: Buffer.from('b') }), 'invalid_signature');
    await refused(signed({}, { method: 'GET' }), 'invalid_signature');
    await refused(signed({}, { path: '/v1/chat/completions?x=1' }), 'invalid_signature');
    await refused(signed({ secret: 'another' }), 'invalid_signature');
    await refused(signed({ service: 'nobody' }), 'invalid_signature', /^The signature is not right/);
    const headers = sign({ at: clock.at });
    for (const forged of [
      { 'x-hermes-nonce': 'other' },
      { 'x-hermes-timestamp': String(clock.at / 1000 - 1) },
      { 'x-hermes-signature': 'v1=00' },
      { 'x-hermes-signature': headers['x-hermes-signature'].slice(3) },
    ])
      await refused(ask(readCredential({ ...headers, ...forged }), { body: Buffer.alloc(0) }), 'invalid_signature');
    await signed({ path: '/v1/x?a=1&b=%20' }, { path: '/v1/x?a=1&b=%20' });
  });
  it('are refused beyond the skew, in both directions, and without a readable time or nonce', async () => {
    const { signed, clock } = openRoom();
    await signed({ at: clock.at - 60_000 });
    await signed({ at: clock.at + 60_000 });
    await refused(signed({ at: clock.at - 61_000 }), 'invalid_signature', /more than 60 seconds/);
    await refused(signed({ at: clock.at + 61_000 }), 'invalid_signature', /more than 60 seconds/);
    await refused(signed({ nonce: '' }), 'invalid_signature', /nonce/);
    await refused(signed({ nonce: 'n'.repeat(129) }), 'invalid_signature', /nonce/);
    await refused(signed({ at: Number.NaN }), 'invalid_signature', /Unix seconds/);
  });
  it('are good once; a forged one burns no nonce', async () => {
    const { signed } = openRoom();
    await refused(signed({ nonce: 'n1', secret: 'another' }), 'invalid_signature');
    await signed({ nonce: 'n1' });
    await refused(signed({ nonce: 'n1' }), 'invalid_signature', /used before/);
    await signed({ nonce: 'n2' });
  });
  it('are good once for all instances that share a hot store', async () => {
    const hot = createMemoryStore({ keyPrefix: '', log: recordLog(), environment: makeClock(0) });
    const [a, b] = [openRoom(hot), openRoom(hot)];
    await a.signed({ nonce: 'n1' });
    await refused(b.signed({ nonce: 'n1' }), 'invalid_signature', /used before/);
  });
  it('are good once also while the hot store is away, and when it is back', async () => {
    let away = true;
    const memory = createMemoryStore({ keyPrefix: '', log: recordLog(), environment: makeClock(0) });
    const hot = { ...memory, set: (...args: Parameters<typeof memory.set>) => (away ? Promise.reject(new Error('away')) : memory.set(...args)) };
    const { signed } = openRoom(hot);
    await signed({ nonce: 'n1' });
    await refused(signed({ nonce: 'n1' }), 'invalid_signature', /used before/);
    away = false;
    await refused(signed({ nonce: 'n1' }), 'invalid_signature', /used before/);
  });
  it('may leave a payload unsigned only where it is not read', async () => {
    const { signed } = openRoom();
    const unsigned = { digest: 'UNSIGNED-PAYLOAD' };
    await signed(unsigned, { body: undefined });
    await refused(signed(unsigned, { body: Buffer.from('{}') }), 'invalid_signature');
    await refused(signed({}, { body: undefined }), 'invalid_signature', /UNSIGNED-PAYLOAD/);
    await signed({}, { body: undefined, bodiless: true });
    await refused(signed({ body: 'x' }, { body: undefined, bodiless: true }), 'invalid_signature');
  });
});

describe('refused credentials', () => {
  it('have a log line and a metric each, and never the key', async () => {
    const { log, counted, withKey, ask, signed } = openRoom();
    await refused(withKey('sk-guess-secret'), 'invalid_api_key');
    await refused(ask(undefined), 'invalid_api_key');
    await refused(signed({ secret: 'another' }), 'invalid_signature');
    assert.deepEqual(counted, [{ kind: 'key' }, { kind: 'missing' }, { kind: 'signature' }]);
    assert.deepEqual(log.lines[0], {
      level: 'warn',
      message: 'a credential was refused',
      fields: { request_id: 'r1', kind: 'key', code: 'invalid_api_key', address: '192.0.2.7' },
    });
    assert.equal(log.lines.length, 3);
    assert.ok(!JSON.stringify(log.lines).includes('guess'));
  });
  it('are throttled by address: 429 and silence, while a right key still gets in', async () => {
    const { log, clock, withKey } = openRoom();
    for (let i = 0; i < 300; i++) await refused(withKey('wrong'), 'invalid_api_key');
    for (let i = 0; i < 100; i++) await refused(withKey('wrong'), 'rate_limit_exceeded');
    assert.equal(log.lines.length, 300);
    assert.match(log.lines[299]?.message ?? '', /not logged/);
    await withKey(NEW);
    await refused(withKey('wrong', { remoteAddress: '192.0.2.8' }), 'invalid_api_key');
    clock.at += 1000;
    await refused(withKey('wrong'), 'invalid_api_key');
    assert.match(JSON.stringify(log.lines.at(-1)), /"suppressed":100/);
  });
  it('count one IPv6 network as one, and an IPv4 address as itself however it is written', async () => {
    const { withKey } = openRoom();
    for (let i = 0; i < 300; i++) await refused(withKey('wrong', { remoteAddress: `2001:db8:0:7::${i.toString(16)}` }), 'invalid_api_key');
    await refused(withKey('wrong', { remoteAddress: '2001:0DB8::7:1:2:3:4' }), 'rate_limit_exceeded');
    await refused(withKey('wrong', { remoteAddress: '2001:db8:0:8::1' }), 'invalid_api_key');
    for (let i = 0; i < 300; i++) await refused(withKey('wrong', { remoteAddress: '::ffff:198.51.100.1' }), 'invalid_api_key');
    await refused(withKey('wrong', { remoteAddress: '198.51.100.1' }), 'rate_limit_exceeded');
    await refused(withKey('wrong', { remoteAddress: '::1' }), 'invalid_api_key');
  });
});

describe('what a caller may assert', () => {
  const { room } = openRoom();
  const principal = toPrincipal(config.auth.keys.find(({ id }) => id === 'support') ?? assert.fail());
  const caller = (ask: Ask, user?: string): Caller => room.toCaller({ ask, request: { messages: [], ...(user === undefined ? {} : { user }) } }, principal);
  const forbidden = (ask: Ask, param: string): void => {
    assert.throws(
      () => caller(ask),
      (thrown) => thrown instanceof HermesError && thrown.code === 'permission_denied' && thrown.status === 403 && thrown.param === param,
    );
  };

  it('is a service and a project among its own', () => {
    assert.deepEqual(caller({}), { service: 'support', project: 'shop', user: undefined, userLevel: undefined, priority: 'normal' });
    assert.equal(caller({ serviceType: 'kb' }).service, 'kb');
    assert.equal(caller({ project: 'lab-7' }).project, 'lab-7');
    forbidden({ serviceType: 'billing' }, 'service_type');
    forbidden({ project: 'other' }, 'project');
  });
  it('is a level and a priority that the key names', () => {
    assert.equal(caller({ userLevel: 'vip' }).userLevel, 'vip');
    assert.equal(caller({ priority: 'batch' }).priority, 'batch');
    forbidden({ userLevel: 'svip' }, 'user_level');
    forbidden({ priority: 'urgent' }, 'priority');
  });
  it('is any user', () => {
    assert.equal(caller({ user: 'u1' }).user, 'u1');
    assert.equal(caller({}, 'u2').user, 'u2');
    assert.equal(caller({}, '').user, undefined);
  });
});

describe('patterns', () => {
  it('stand for anything by a star, also in the middle and more than once', () => {
    const yes: [string, string][] = [
      ['*', 'anything'],
      ['order.*', 'order.query'],
      ['order.*', 'order.'],
      ['*_model', 'fast_model'],
      ['a*c', 'abc'],
      ['a*b*c', 'aXXbYYc'],
      ['exact', 'exact'],
    ];
    const no: [string, string][] = [
      ['order.*', 'orders.query'],
      ['exact', 'exactly'],
      ['a*a', 'a'],
      ['a*b*c', 'acb'],
      ['a*bb*b', 'abb'],
      ['', 'x'],
    ];
    for (const [pattern, name] of yes) assert.ok(allows([pattern], name), `${pattern} ${name}`);
    for (const [pattern, name] of no) assert.ok(!allows([pattern], name), `${pattern} ${name}`);
    assert.ok(!allows([], 'x'));
  });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createProxyChoice } from '../../src/upstream/proxy-choice.ts';

const [HTTP, HTTPS] = ['http://plain.proxy:3128', 'http://secure.proxy:3128'];

test('each protocol has its proxy, and the plain one stands in for the other', () => {
  const both = createProxyChoice({ http: HTTP, https: HTTPS });
  assert.deepEqual(['http://a/', 'ws://a/', 'https://a/', 'wss://a/'].map(both), [HTTP, HTTP, HTTPS, HTTPS]);
  assert.equal(createProxyChoice({ http: HTTP })('https://a/'), HTTP);
  assert.equal(createProxyChoice({ https: HTTPS })('http://a/'), undefined);
  assert.equal(createProxyChoice()('https://a/'), undefined);
});

for (const [no, straight, proxied] of [
  [
    'internal.test',
    ['http://internal.test/', 'http://a.internal.test:8080/', 'http://INTERNAL.test/'],
    ['http://notinternal.test/', 'http://internal.test.de/'],
  ],
  ['.internal.test', ['http://internal.test/', 'http://a.internal.test/'], ['http://x.test/']],
  ['*.internal.test', ['http://a.b.internal.test/'], ['http://x.test/']],
  ['a.test:8080, b.test', ['http://a.test:8080/', 'http://b.test:1/'], ['http://a.test/', 'http://a.test:80/']],
  ['a.test:443 b.test:80', ['https://a.test/', 'http://b.test/', 'ws://b.test/'], ['http://a.test/', 'https://b.test/']],
  ['10.0.0.1,[::1]', ['http://10.0.0.1:9/', 'http://[::1]:9/'], ['http://10.0.0.11/', 'http://[::2]/']],
  ['*', ['http://a/', 'https://b:1/'], []],
  [' , ', [], ['http://a/']],
] as const)
  test(`NO_PROXY=${no}`, () => {
    const choose = createProxyChoice({ http: HTTP, https: HTTPS, no });
    for (const url of straight) assert.equal(choose(url), undefined, url);
    for (const url of proxied) assert.ok(choose(url), url);
  });

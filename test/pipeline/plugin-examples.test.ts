import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { type RunningApp, saidIn, startApp, user } from '../app-kit.ts';

/** The examples of plugins/README.md, as they stand there. */
const README = readFileSync(new URL('../../plugins/README.md', import.meta.url), 'utf8');
const EXAMPLES = Object.fromEntries([...README.matchAll(/```js file=(\S+)\n([\s\S]*?)```/g)].map(([, name, text]) => [name, text])) as Record<string, string>;

describe('the examples of plugins/README.md', () => {
  let running: RunningApp;
  before(async () => {
    running = await startApp({ plugins: { 'small-cache': { entries: 10 } } }, { files: EXAMPLES });
  });
  after(() => running.stop());

  it('are three', () => assert.deepEqual(Object.keys(EXAMPLES), ['team-header.mjs', 'redact-cards.mjs', 'small-cache.mjs']));

  it('add a header, to JSON and to streams', async () => {
    for (const stream of [false, true]) assert.equal((await running.chat({ messages: user('hello'), stream })).headers.get('x-team'), 'shop');
  });

  it('redact a body in both directions, JSON and streams', async () => {
    for (const stream of [false, true]) {
      const reply = await running.chat({ messages: user(`my card is 4111 1111 1111 1111 (${stream})`), stream });
      assert.doesNotMatch(reply.text, /4111/);
      assert.match(saidIn(reply), /\[card\]/);
    }
  });

  it('answer from a cache', async () => {
    const [first, second] = [await running.chat({ messages: user('the same again') }), await running.chat({ messages: user('the same again') })];
    assert.equal(first.headers.get('x-cache'), null);
    assert.equal(second.headers.get('x-cache'), 'hit');
    assert.equal(saidIn(second), saidIn(first));
  });

  it('stand where they asked to', async () => {
    const { data } = (await running.fetch('/admin/plugins')).json as unknown as { data: { name: string }[] };
    const names = data.map(({ name }) => name);
    assert.equal(names[names.indexOf('route') + 1], 'team-header');
    assert.deepEqual(names.slice(names.indexOf('limits'), names.indexOf('session')), ['limits', 'redact-cards', 'small-cache']);
  });
});

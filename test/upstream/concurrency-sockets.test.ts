import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { KEY, type RunningApp, startApp, user } from '../app-kit.ts';
import { createFakeUpstream, type FakeUpstream, type ReceivedCall } from '../fake-upstream.ts';

const QUIET = 'sk-quiet-0123456789abcdefghij';

describe('a model with max_concurrent in the running product', () => {
  let upstream: FakeUpstream;
  let app: RunningApp;
  /** Answers held until the test lets them go. */
  let held: (() => void)[] = [];
  let seen: string[] = [];
  before(async () => {
    upstream = await createFakeUpstream();
    const model = { provider: 'openai', api_base: upstream.url, api_key_env: 'UP_KEY', max_concurrent: 2 };
    app = await startApp(
      {
        models: [
          { id: 'bounded', ...model, max_queue: 4, failover: { failure_threshold: 1 } },
          { id: 'streaming', ...model, max_concurrent: 1, max_queue: 1 },
          { id: 'whole', ...model, max_concurrent: 1 },
        ],
        auth: { keys: [{ id: 'quiet', key_env: 'QUIET_KEY', service: 'quiet' }] },
      },
      { env: { UP_KEY: 'sk-up', QUIET_KEY: QUIET } },
    );
    const text = (call: ReceivedCall): string => String(call.body.messages.at(-1)?.content);
    upstream.on('bounded', async (reply, call) => {
      seen.push(text(call));
      await new Promise<void>((resolve) => held.push(resolve));
      await reply.completion({ content: text(call) });
    });
    upstream.on('streaming', async (reply) => {
      await reply.stream([{ role: 'assistant', content: 'one' }], { done: false, end: false });
      await new Promise<void>((resolve) => held.push(resolve));
      await reply.stream([{ content: 'two' }, 'stop']);
    });
    // A whole answer although a stream was asked for.
    upstream.on('whole', (reply) => reply.completion({ content: 'whole' }));
  });
  const release = (): void => {
    for (const let_go of held.splice(0)) let_go();
  };
  afterEach(() => {
    release();
    held = [];
    seen = [];
  });
  after(async () => {
    release();
    await app.stop();
    await upstream.close();
  });
  const ask = (name: string, over: object = {}, key = KEY) => app.chat({ model: 'bounded', messages: user(name), ...over }, { authorization: `Bearer ${key}` });

  it('serves a quiet service in its turn, refuses what the queue of a burst cannot hold, and loses nobody', async () => {
    const burst = Array.from({ length: 12 }, (_, i) => ask(`burst ${i}`));
    await upstream.until(() => seen.length === 2);
    const early = await Promise.race(burst);
    assert.deepEqual([early.status, early.json.error?.code], [503, 'overloaded']);
    assert.ok(Number(early.headers.get('retry-after')) >= 1);
    assert.notEqual(early.headers.get('x-should-retry'), 'false');
    let refused = 0;
    for (const one of burst) void one.then(({ status }) => (refused += Number(status === 503)));
    await upstream.until(() => refused === 6);
    const quiet = ask('quiet', {}, QUIET);
    await upstream.until(() => refused === 7);
    const letting = setInterval(() => held.shift()?.(), 20);
    const answers = await Promise.all([...burst, quiet]);
    clearInterval(letting);
    assert.equal(answers.at(-1)?.status, 200, 'a full queue is no reason to refuse another service');
    assert.ok(seen.indexOf('quiet') <= 3, `the quiet service waited behind the burst: ${seen.join(', ')}`);
    const served = answers.filter(({ status }) => status === 200).length;
    assert.deepEqual([served, answers.length - served], [seen.length, 13 - seen.length]);
  });
  it('ends the wait at the deadline of the request, and holds nothing against the upstream', async () => {
    const running = [ask('a'), ask('b')];
    await upstream.until(() => seen.length === 2);
    const late = await ask('late', { timeout: 0.1 });
    assert.deepEqual([late.status, late.json.error?.code], [504, 'deadline_exceeded']);
    release();
    for (const one of running) assert.equal((await one).status, 200);
    const next = ask('next');
    await upstream.until(() => held.length === 1);
    release();
    assert.equal((await next).status, 200, 'its breaker, which one failure would open, is closed');
    assert.ok(!seen.includes('late'));
  });
  it('keeps the place of a stream until that is over, or its client has left', async () => {
    const body = JSON.stringify({ model: 'streaming', stream: true, messages: user('hi') });
    const leaving = new AbortController();
    const open = (signal?: AbortSignal) =>
      fetch(`${app.base}/v1/chat/completions`, {
        method: 'POST',
        body,
        headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
        ...(signal ? { signal } : {}),
      });
    const first = await open(leaving.signal);
    await first.body?.getReader().read();
    const second = open();
    await new Promise((resolve) => setTimeout(resolve, 80));
    assert.equal(upstream.callsOf('streaming').length, 1, 'the second waits while the first is being streamed');
    held = [];
    leaving.abort();
    await upstream.until(() => upstream.callsOf('streaming').length === 2 && held.length === 1);
    release();
    assert.match(await (await second).text(), /two[\s\S]*\[DONE\]/);
    const third = open();
    await upstream.until(() => held.length === 1);
    release();
    assert.match(await (await third).text(), /\[DONE\]/);
  });
  it('gives the place back when a whole answer comes where a stream was asked for, and when the upstream refuses', async () => {
    for (let i = 0; i < 3; i++) assert.match((await app.chat({ model: 'whole', stream: true, messages: user('hi') })).text, /whole/);
    upstream.on('whole', (reply) => reply.error(400, 'no'));
    for (let i = 0; i < 3; i++) assert.equal((await app.chat({ model: 'whole', messages: user('hi'), timeout: 5 })).status, 400);
  });
});

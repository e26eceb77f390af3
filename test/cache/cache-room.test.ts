import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Answer } from '../../src/contracts/exchange.ts';
import { type HotStore, StoreUnavailable } from '../../src/contracts/hot-store.ts';
import { createBuiltinEmbedder } from '../../src/routing/embedding/builtin-embedder.ts';
import { collect } from '../../src/wire/collect.ts';
import { makeConfig } from '../config/make-config.ts';
import { completion, streamOf } from '../pipeline/pipeline-kit.ts';
import { until } from '../services.ts';
import { cached, cold, memoryHot } from './cache-kit.ts';

const state = (answer: Answer): string | undefined => answer.headers['x-hermes-cache'];
const text = async (answer: Answer): Promise<unknown> =>
  (answer.stream ? await collect(answer.stream) : (answer.view as ReturnType<typeof completion>)).choices[0]?.message.content;

describe('the cache room', () => {
  it('makes one call for a thousand equal requests at once, whole or streamed', async () => {
    for (const made of [() => ({ body: completion('whole') }), () => ({ stream: streamOf('who', 'le') })]) {
      const cache = cached(async () => {
        await sleep(20);
        return made();
      });
      const answers = await Promise.all(Array.from({ length: 1000 }, () => cache.ask(cold('crowd'))));
      assert.ok((await Promise.all(answers.map(text))).every((said) => said === 'whole'));
      assert.equal(cache.calls, 1);
      assert.deepEqual([answers.filter((answer) => state(answer) === 'miss').length, answers.filter((answer) => state(answer) === 'hit').length], [1, 999]);
      assert.equal(state(await cache.ask(cold('crowd'))), 'hit');
    }
  });

  it('gives every caller an answer of its own', async () => {
    const cache = cached(() => ({ body: completion('mine') }));
    for (let index = 0; index < 3; index++) {
      const answer = await cache.ask(cold('own'));
      assert.equal(await text(answer), 'mine');
      (answer.body as ReturnType<typeof completion>).choices = [];
      answer.facts.requestId = `r${index}`;
    }
    assert.equal(cache.calls, 1);
  });

  it('lets who waits fail with the one that was sent, and keeps nothing of it', async () => {
    const cache = cached(async () => {
      await sleep(5);
      throw new Error('boom');
    });
    const answers = await Promise.all([cache.ask(cold('x')), cache.ask(cold('x'))]);
    assert.deepEqual(
      answers.map(({ status }) => status),
      [500, 500],
    );
    assert.equal(cache.calls, 1);
    await cache.ask(cold('x'));
    assert.equal(cache.calls, 2);
  });

  it('keeps no degraded answer', async () => {
    const cache = cached(() => ({ body: completion('second choice'), facts: { degraded: true } }));
    await cache.ask(cold('x'));
    assert.equal(state(await cache.ask(cold('x'))), 'miss');
  });

  it('keeps what fits, the least recently used going first', async () => {
    const cache = cached(() => ({ body: completion('x'.repeat(1000)) }), { cache: { max_bytes: 20_000 } });
    for (let index = 0; index < 15; index++) await cache.ask(cold(`q${index}`));
    assert.equal(state(await cache.ask(cold('q14'))), 'hit');
    assert.equal(state(await cache.ask(cold('q0'))), 'miss');
  });

  it('forgets after its time', async (test) => {
    const cache = cached(() => ({ body: completion('x') }), { cache: { ttl_seconds: 60 } });
    await cache.ask(cold('x'));
    const began = Date.now();
    test.mock.method(Date, 'now', () => began + 59_000);
    assert.equal(state(await cache.ask(cold('x'))), 'hit');
    test.mock.restoreAll();
    test.mock.method(Date, 'now', () => began + 61_000);
    assert.equal(state(await cache.ask(cold('x'))), 'miss');
  });

  it('asks anew when another upstream serves the model, or other guards stand', async () => {
    const cache = cached(() => ({ body: completion('x') }));
    const other = (file: object) => ({ config: makeConfig({ cache: {}, ...file }) });
    await cache.ask(cold('x'), other({}));
    assert.equal(state(await cache.ask(cold('x'), other({}))), 'hit');
    assert.equal(state(await cache.ask(cold('x'), other({ models: [{ id: 'fast_model', provider: 'simulator', model_name: 'newer' }] }))), 'miss');
    assert.equal(state(await cache.ask(cold('x'), other({ guards: [{ id: 'pii', kind: 'pii' }] }))), 'miss');
    const source = (url: string) => other({ tools: [{ id: 'files', mcp: { url } }] });
    assert.equal(state(await cache.ask(cold('x'), source('http://127.0.0.1:1/a'))), 'miss');
    assert.equal(state(await cache.ask(cold('x'), source('http://127.0.0.1:1/a'))), 'hit');
    assert.equal(state(await cache.ask(cold('x'), source('http://127.0.0.1:1/b'))), 'miss');
    assert.equal(state(await cache.ask(cold('x'), other({ tool_loop_guard: { repeats: 3 } }))), 'miss');
  });
});

describe('a shared hot store', () => {
  it('gives what another instance has kept, to the same principal alone', async () => {
    const hot = Object.assign(memoryHot(), { shared: true });
    const [one, two] = [0, 1].map(() => cached(() => ({ stream: streamOf('sha', 'red') }), { hot }));
    await text(await (one as typeof two & object).ask(cold('x')));
    const answer = await (two as typeof one & object).ask(cold('x'));
    assert.deepEqual([state(answer), await text(answer), two?.calls], ['hit', 'shared', 0]);
    assert.equal(state(await (two as typeof one & object).ask(cold('x'), { key: 'other' })), 'miss');
  });

  const two = (model: Parameters<typeof cached>[0], hot = Object.assign(memoryHot(), { shared: true })) =>
    [cached(model, { hot }), cached(model, { hot })] as const;

  it('lets one instance ask for all, whole or streamed', async () => {
    for (const made of [() => ({ body: completion('whole') }), () => ({ stream: streamOf('who', 'le') })]) {
      const caches = two(async () => {
        await sleep(60);
        return made();
      });
      const answers = await Promise.all(Array.from({ length: 1000 }, (_, index) => caches[index % 2 === 0 ? 0 : 1].ask(cold('crowd'))));
      assert.ok((await Promise.all(answers.map(text))).every((said) => said === 'whole'));
      assert.equal(caches[0].calls + caches[1].calls, 1);
      assert.equal(answers.filter((answer) => state(answer) === 'miss').length, 1);
    }
  });

  it('makes nobody wait twice for what is not kept', async () => {
    const hot = Object.assign(memoryHot(), { shared: true });
    const order: string[] = [];
    const caches = Array.from({ length: 4 }, () =>
      cached(
        async () => {
          order.push('began');
          // One, then all of the others side by side: none of them fails before all have begun.
          if (order.length === 1) await sleep(300);
          else await until(() => order.filter((event) => event === 'began').length === 4, 'not all of them began');
          order.push('failed');
          throw new Error('boom');
        },
        { hot },
      ),
    );
    const answers = await Promise.all(caches.map((cache) => cache.ask(cold('x'))));
    assert.ok(answers.every(({ status }) => status === 500));
    assert.deepEqual(order, ['began', 'failed', 'began', 'began', 'began', 'failed', 'failed', 'failed']);
  });

  it('lets the others go on when who asked for all has left', async () => {
    let asked = 0;
    const caches = two(async ({ signal }) => {
      asked++;
      await sleep(asked === 1 ? 60_000 : 1, undefined, { signal });
      return { body: completion('second') };
    });
    const leaving = new AbortController();
    const first = caches[0].ask(cold('x'), { leave: leaving.signal });
    await until(() => asked === 1, 'nobody asked');
    const waiting = caches[1].ask(cold('x'));
    leaving.abort();
    assert.equal((await first).error?.code, 'client_closed');
    assert.equal(await text(await waiting), 'second');
  });

  it('holds no place for who left before it was given', async () => {
    const hot = Object.assign(memoryHot(), { shared: true });
    const late: HotStore = { ...hot, acquire: async (...name) => sleep(30).then(() => hot.acquire(...name)) };
    const caches = [cached(() => assert.fail('nobody is left to ask'), { hot: late }), cached(() => ({ body: completion('mine') }), { hot })] as const;
    const leaving = new AbortController();
    const first = caches[0].ask(cold('x'), { leave: leaving.signal });
    setTimeout(() => leaving.abort(), 10);
    await first;
    await sleep(50);
    assert.equal(await text(await caches[1].ask(cold('x'))), 'mine');
  });

  it('that is away only loses hits', async () => {
    const away = async () => {
      throw new StoreUnavailable('redis');
    };
    const hot = Object.assign(memoryHot(), { shared: true, get: away, set: away });
    const cache = cached(() => ({ body: completion('x') }), { hot });
    assert.deepEqual([state(await cache.ask(cold('x'))), state(await cache.ask(cold('x')))], ['miss', 'hit']);
  });
});

describe('by meaning', () => {
  const embedder = createBuiltinEmbedder();
  const semantic = (threshold = 0.7) =>
    cached(({ request }) => ({ body: completion(`re: ${String(request.messages.at(-1)?.content)}`) }), {
      cache: { semantic: { enabled: true, threshold } },
      embed: async (_config, words) => (await embedder.embed([words], { timeoutMs: 100 }))[0],
    });
  const near = ['How do I reset my password?', 'how do i reset the password'] as const;

  it('answers the same question in other words', async () => {
    const cache = semantic();
    assert.equal(state(await cache.ask(cold(near[0]))), 'miss');
    const answer = await cache.ask(cold(near[1]));
    assert.deepEqual([state(answer), await text(answer)], ['hit', `re: ${near[0]}`]);
    assert.equal(state(await cache.ask(cold('What does shipping to Iceland cost?'))), 'miss');
  });

  it('never across principals, system prompts, conversations, or numbers', async () => {
    const cache = semantic();
    await cache.ask(cold(near[0]));
    assert.equal(state(await cache.ask(cold(near[1]), { key: 'other' })), 'miss');
    const behind = (first: object) => cold('', { messages: [first, { role: 'user', content: near[1] }] });
    assert.equal(state(await cache.ask(behind({ role: 'system', content: 'You are a pirate.' }))), 'miss');
    assert.equal(state(await cache.ask(behind({ role: 'user', content: 'Hello' }))), 'miss');
    await cache.ask(cold('Where is my order 4711 now, please?'));
    assert.equal(state(await cache.ask(cold('Where is my order 4712 now, please?'))), 'miss');
    await cache.ask(cold('Which plan has jane.doe@example.com booked for this year?'));
    assert.equal(state(await cache.ask(cold('Which plan has jane.roe@example.com booked for this year?'))), 'miss');
    assert.equal(state(await cache.ask(cold('which plan has jane.doe@example.com booked for this year?'))), 'hit');
  });

  it('never across what guards find, though the embedder is shown none of it', async () => {
    const cache = cached(({ request }) => ({ body: completion(`re: ${String(request.messages.at(-1)?.content)}`) }), {
      cache: { semantic: { enabled: true } },
      embed: async () => new Float32Array([1, 0]),
      found: (_config, words) => words.match(/jane|rob/g) ?? [],
    });
    await cache.ask(cold('what has jane booked'));
    assert.equal(await text(await cache.ask(cold('what has rob booked'))), 're: what has rob booked');
    assert.equal(state(await cache.ask(cold('and what has jane booked'))), 'hit');
  });

  it('never for requests with tools, and not without an embedding', async () => {
    const cache = semantic();
    const tools = { tools: [{ type: 'function', function: { name: 'f' } }] };
    const use = { headers: { 'x-hermes-cache': 'use' } };
    await cache.ask(cold(near[0], tools), use);
    assert.equal(state(await cache.ask(cold(near[1], tools), use)), 'miss');
    const blind = cached(() => ({ body: completion('x') }), { cache: { semantic: { enabled: true } }, embed: () => Promise.reject(new Error('away')) });
    await blind.ask(cold(near[0]));
    assert.deepEqual([state(await blind.ask(cold(near[0]))), state(await blind.ask(cold(near[1])))], ['hit', 'miss']);
  });
});

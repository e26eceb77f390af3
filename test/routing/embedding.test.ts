import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createBuiltinEmbedder } from '../../src/routing/embedding/builtin-embedder.ts';
import type { FetchJson } from '../../src/routing/embedding/create-embedder.ts';
import { asking, routeOf, routing, rule } from './fixture.ts';

/** A service whose vectors stand in the texts: `a:0.8` is 0.8 near to example a. */
function vectorOf(text: string): number[] {
  const near = /sim([ab]):(0\.\d+)/.exec(text);
  if (near) {
    const score = Number(near[2]);
    const rest = Math.sqrt(1 - score * score);
    return near[1] === 'a' ? [score, 0, rest, 0] : [0, score, rest, 0];
  }
  if (text.includes('example-a')) return [3, 0, 0, 0];
  return text.includes('example-b') ? [0, 5, 0, 0] : [0, 0, 0, 1];
}
interface Service {
  fetchJson: FetchJson;
  asked: string[][];
  answer: (texts: string[], signal: AbortSignal) => unknown;
  last: { url: string; headers: Record<string, string> } | undefined;
}
const good = (texts: string[]) => ({ data: texts.map((text, index) => ({ index, embedding: vectorOf(text) })) });
function service(): Service {
  const made: Service = {
    asked: [],
    answer: good,
    last: undefined,
    fetchJson: async (url, { headers, body, signal }) => {
      const { input } = JSON.parse(body) as { input: string[] };
      made.asked.push(input);
      made.last = { url, headers };
      return made.answer(input, signal);
    },
  };
  return made;
}
const block = { embedding: { provider: 'emb', model_name: 'emb-1', api_base: 'http://emb.test/v1/', api_key_env: 'EMB_KEY', timeout_ms: 60 } };
const rules = [
  rule('before', { keywords: ['early'] }),
  rule('sem', { embedding: { top_k: 1, min_score: 0.72, examples: ['example-a one', 'example-b two'] } }),
  rule('vip', { user_level: 'vip', embedding: { top_k: 5, min_score: 0.1, examples: ['example-a three'] } }),
  rule('after', { keywords: ['late'] }),
  rule('rest', '.*'),
];
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe('rules by meaning', () => {
  const texts: [string, string, string][] = [
    ['above min_score hits', 'sima:0.80 please', 'sem'],
    ['just above min_score hits', 'sima:0.73 please', 'sem'],
    ['just below misses', 'sima:0.71 please', 'rest'],
    ['the nearest of the examples counts', 'simb:0.90 please', 'sem'],
    ['something unlike misses', 'quite another thing', 'rest'],
  ];
  for (const [name, text, want] of texts)
    it(name, async () => assert.equal(await routeOf(routing(rules, block, { fetchJson: service().fetchJson }), text), want));

  it('asks the service with its model, its key and its address', async () => {
    const { fetchJson, ...made } = service();
    const remote = { ...made, fetchJson };
    let seen: { url: string; authorization: string | undefined } | undefined;
    const bench = routing(rules, block, {
      fetchJson: (url, init, limit) => {
        seen = { url, authorization: init.headers.authorization };
        return remote.fetchJson(url, init, limit);
      },
    });
    await routeOf(bench, 'sima:0.9');
    assert.deepEqual(seen, { url: 'http://emb.test/v1/embeddings', authorization: 'Bearer sk-emb' });
  });

  it('asks once a request for all rules, once for ever for the examples, and not at all when an earlier rule hits', async () => {
    const emb = service();
    const bench = routing(rules, block, { fetchJson: emb.fetchJson });
    await settled();
    const afterWarmUp = emb.asked.length;
    assert.equal(await routeOf(bench, { messages: [{ role: 'user', content: 'sima:0.30' }], caller: { userLevel: 'vip' } }), 'vip');
    assert.equal(emb.asked.length, afterWarmUp + 1);
    await routeOf(bench, 'sima:0.30');
    assert.equal(emb.asked.length, afterWarmUp + 1, 'the same question again is known');
    await routeOf(bench, 'early sima:0.9');
    assert.equal(emb.asked.length, afterWarmUp + 1, 'an earlier hit asks nobody');
    bench.room.compile({ ...bench.config });
    await settled();
    assert.equal(emb.asked.length, afterWarmUp + 1, 'a reload keeps the examples');
  });

  it('asks nobody when a field of the rule misses', async () => {
    const emb = service();
    const bench = routing([rule('vip', { embedding: { examples: ['example-a'] }, user_level: 'vip' }), rule('rest', '.*')], block, {
      fetchJson: emb.fetchJson,
    });
    await settled();
    const before = emb.asked.length;
    assert.equal(await routeOf(bench, 'sima:0.9'), 'rest');
    assert.equal(emb.asked.length, before);
  });

  it('takes the mean of the top_k nearest', async () => {
    const examples = ['sima:0.90', 'sima:0.60', 'simb:0.90'];
    const at = (topK: number, minScore: number) =>
      routing([rule('sem', { embedding: { examples, top_k: topK, min_score: minScore } }), rule('rest', '.*')], block, { fetchJson: service().fetchJson });
    const score = async (topK: number) => (await at(topK, 0).engine.explain(asking('example-a'))).score ?? 0;
    assert.ok(Math.abs((await score(1)) - 0.9) < 1e-5);
    assert.ok(Math.abs((await score(2)) - 0.75) < 1e-5);
    assert.ok(Math.abs((await score(9)) - 0.5) < 1e-5, 'more than there are: all of them');
  });

  it('misses when the next rule is nearer than min_margin', async () => {
    const bench = (margin: number) =>
      routing(
        [
          rule('a', { embedding: { examples: ['example-a'], min_score: 0.5, min_margin: margin } }),
          rule('b', { embedding: { examples: ['sima:0.70'], min_score: 0.99 } }),
          rule('rest', '.*'),
        ],
        block,
        {
          fetchJson: service().fetchJson,
        },
      );
    const near = 'sima:0.80'; // 0.80 to a, 0.80 × 0.70 + 0.60 × 0.714 = 0.988 to b
    assert.equal(await routeOf(bench(0), near), 'rest');
    assert.equal(await routeOf(bench(0), 'sima:0.99'), 'a');
    assert.match((await bench(0.5).engine.explain(asking('sima:0.99'))).earlier[0]?.why ?? '', /min_margin 0.5 above the next rule's 0\.79/);
  });

  it('gives the score for views', async () => {
    const bench = routing(rules, block, { fetchJson: service().fetchJson });
    const explanation = await bench.engine.explain(asking('sima:0.81'));
    assert.equal(explanation.rule, 'sem');
    assert.ok(Math.abs((explanation.score ?? 0) - 0.81) < 1e-5);
    assert.match(explanation.why, /0\.810/);
  });

  it('takes vectors as base64 and in any order', async () => {
    const emb = service();
    emb.answer = (texts) => ({
      data: texts.map((text, index) => ({ index, embedding: Buffer.from(Float32Array.from(vectorOf(text)).buffer).toString('base64') })).reverse(),
    });
    assert.equal(await routeOf(routing(rules, block, { fetchJson: emb.fetchJson }), 'simb:0.90'), 'sem');
  });

  it('keeps example vectors in the cold store', async () => {
    const kept = new Map<string, string>();
    const cold = { getValue: async (key: string) => kept.get(key), setValue: async (key: string, value: string) => kept.set(key, value).size > 0 };
    await routeOf(routing(rules, block, { fetchJson: service().fetchJson, cold }), 'sima:0.9');
    const emb = service();
    assert.equal(await routeOf(routing(rules, block, { fetchJson: emb.fetchJson, cold }), 'sima:0.9 again'), 'sem');
    assert.deepEqual(emb.asked, [['sima:0.9 again']]);
  });
});

describe('an embedding service that fails (field report 34)', () => {
  const ways: [string, Service['answer']][] = [
    ['refuses', () => Promise.reject(new Error('ECONNREFUSED'))],
    ['answers 500', () => Promise.reject(new Error('status 500'))],
    ['hangs', () => new Promise(() => undefined)],
    ['answers an empty list', () => ({ data: [] })],
    ['answers another number of vectors', (texts) => ({ data: [...good(texts).data, ...good(texts).data] })],
    ['answers another length', (texts) => ({ data: texts.map((_, index) => ({ index, embedding: [1, 0] })) })],
    ['answers zeros', (texts) => ({ data: texts.map((_, index) => ({ index, embedding: [0, 0, 0, 0] })) })],
    ['answers NaN', (texts) => ({ data: texts.map((_, index) => ({ index, embedding: [Number.NaN, 0, 0, 0] })) })],
    ['answers nulls', (texts) => ({ data: texts.map((_, index) => ({ index, embedding: [null, null, null, null] })) })],
    ['answers the same index twice', (texts) => ({ data: texts.map(() => ({ index: 7, embedding: [1, 0, 0, 0] })) })],
    ['answers an error object', () => ({ error: { message: 'busy' } })],
    ['answers text', () => '<html>busy</html>'],
    ['answers nothing', () => undefined],
  ];
  for (const [how, answer] of ways) {
    it(`${how}: the next rule, and a count`, async () => {
      const emb = service();
      const bench = routing(rules, block, { fetchJson: emb.fetchJson });
      await settled();
      emb.answer = answer;
      assert.equal(await routeOf(bench, 'late sima:0.95'), 'after');
      const failures = [...bench.seen.counts].filter(([name]) => name.startsWith('hermes_embedding_failures_total'));
      assert.deepEqual(
        failures.map(([, count]) => count),
        [1],
      );
      emb.answer = good;
      assert.equal(await routeOf(bench, 'late sima:0.96'), 'sem', 'once it is well again it is used again');
    });
  }

  it('is skipped under not, too', async () => {
    const emb = service();
    emb.answer = () => Promise.reject(new Error('down'));
    const bench = routing([rule('unlike', { not: { embedding: { examples: ['example-a'] } } }), rule('rest', '.*')], block, { fetchJson: emb.fetchJson });
    assert.equal(await routeOf(bench, 'anything'), 'rest');
    emb.answer = good;
    assert.equal(await routeOf(bench, 'anything else'), 'unlike');
  });

  it('serves at a start without the service, and heals', async () => {
    const emb = service();
    emb.answer = () => Promise.reject(new Error('down'));
    const bench = routing(rules, block, { fetchJson: emb.fetchJson });
    await settled();
    assert.equal(await routeOf(bench, 'late sima:0.9'), 'after');
    emb.answer = good;
    assert.equal(await routeOf(bench, 'late sima:0.91'), 'sem');
  });

  it('is left alone after five failures, for five seconds, then asked once', async () => {
    const emb = service();
    let now = 0;
    const bench = routing(rules, block, { fetchJson: emb.fetchJson, now: () => now });
    await settled();
    emb.answer = () => Promise.reject(new Error('down'));
    for (let index = 0; index < 5; index++) await routeOf(bench, `late ${index}`);
    const asked = emb.asked.length;
    emb.answer = good;
    assert.equal(await routeOf(bench, 'late sima:0.9'), 'after');
    assert.equal(emb.asked.length, asked, 'not asked while open');
    assert.equal(bench.seen.counts.get('hermes_embedding_failures_total open'), 1);
    now += 5_000;
    assert.equal(await routeOf(bench, 'late sima:0.9'), 'sem');
  });

  it('is no failure of the service when the caller goes', async () => {
    const emb = service();
    const bench = routing(rules, { embedding: { ...block.embedding, timeout_ms: 5_000 } }, { fetchJson: emb.fetchJson });
    await settled();
    emb.answer = (_, signal) => new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));
    const gone = new AbortController();
    const decision = bench.engine.decide(Object.assign(asking('late sima:0.9'), { signal: gone.signal }));
    gone.abort();
    assert.equal((await decision).rule, 'after');
    assert.equal(bench.seen.counts.has('hermes_embedding_failures_total aborted'), false);
  });
});

describe('the builtin embedding', () => {
  const parcel = [
    rule('sem', { embedding: { top_k: 1, min_score: 0.72, examples: ['我买的东西怎么还没到', '快递什么时候能到', 'where is my parcel'] } }),
    rule('rest', '.*'),
  ];
  it('is used, with a warning, when there is no embedding block', async () => {
    const bench = routing(parcel);
    assert.equal(await routeOf(bench, '快递什么时候能到'), 'sem');
    assert.match(bench.seen.warnings.join(), /builtin/);
  });
  it('hits its examples in other punctuation, case and width, and misses another subject', async () => {
    const bench = routing(parcel, { embedding: { provider: 'builtin', timeout_ms: 800 } });
    assert.deepEqual(bench.seen.warnings, []);
    for (const text of ['快递什么时候能到', 'Where is my parcel', '我买的东西怎么还没到？', 'ＷＨＥＲＥ ＩＳ ＭＹ ＰＡＲＣＥＬ？！', '快递什么时候到啊'])
      assert.equal(await routeOf(bench, text), 'sem', text);
    for (const text of ['write a haiku about mountains', '今天天气怎么样', '？！', '😀']) assert.equal(await routeOf(bench, text), 'rest', text);
  });
  it('gives the same vectors each time, of length 1', async () => {
    const [first] = await createBuiltinEmbedder().embed(['我要退款 please'], { timeoutMs: 1 });
    const [second] = await createBuiltinEmbedder().embed(['我要退款 please'], { timeoutMs: 1 });
    assert.deepEqual(first, second);
    assert.ok(Math.abs((first ?? new Float32Array()).reduce((sum, value) => sum + value * value, 0) - 1) < 1e-5);
  });
});

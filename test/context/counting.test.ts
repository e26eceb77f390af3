import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { after, describe, it } from 'node:test';
import fc from 'fast-check';
import { cutPieces } from '../../src/context/pieces.ts';
import { costIn } from '../time-kit.ts';
import { hellos, room } from './context-kit.ts';

const require = createRequire(import.meta.url);
const chinese = '我买的东西怎么还没到，快递什么时候能到？';

describe('counting', () => {
  after(() => room.close());

  it('agrees with the published counting of chat messages', async () => {
    // OpenAI's cookbook, "How to count tokens with tiktoken": this example is 129 tokens for gpt-4, 124 for gpt-4o, three of them for the answer.
    const messages = [
      { role: 'system' as const, content: 'You are a helpful, pattern-following assistant that translates corporate jargon into plain English.' },
      { role: 'system' as const, name: 'example_user', content: 'New synergies will help drive top-line growth.' },
      { role: 'system' as const, name: 'example_assistant', content: 'Things working well together will increase revenue.' },
      {
        role: 'system' as const,
        name: 'example_user',
        content: "Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage.",
      },
      { role: 'system' as const, name: 'example_assistant', content: "Let's talk later when we're less busy about how to do better." },
      { role: 'user' as const, content: "This late pivot means we don't have time to boil the ocean for the client deliverable." },
    ];
    for (const [model, expected] of [
      ['gpt-4', 129],
      ['gpt-4o', 124],
    ] as const) {
      let total = 3;
      for (const message of messages) total += await room.countMessage(message, model);
      assert.equal(total, expected, model);
    }
  });

  it('uses the encoding of the target, and o200k_base for names it does not know', async () => {
    for (const model of ['gpt-4o', 'gpt-4o-mini', 'gpt-4.1', 'gpt-5', 'o3', 'openai/gpt-4o', 'some-model'])
      assert.equal(await room.countText(chinese, model), 15, model);
    for (const model of ['gpt-4', 'gpt-4-turbo', 'gpt-3.5-turbo', 'openai/gpt-4']) assert.equal(await room.countText(chinese, model), 26, model);
    assert.equal(await room.countText(hellos(100), 'claude-sonnet-4-5'), 125);
  });

  it('takes special tokens as the plain text that they are', async () => {
    assert.ok((await room.countText('<|endoftext|><|im_start|>', 'gpt-4')) > 6);
  });

  it('estimates images and never tokenises them', async () => {
    const url = `data:image/png;base64,${'iVBORw0KGgo'.repeat(50_000)}`;
    const tokensOf = (detail: object) => room.countMessage({ role: 'user', content: [{ type: 'image_url', image_url: { url, ...detail } }] }, 'gpt-4o');
    assert.deepEqual([await tokensOf({ detail: 'low' }), await tokensOf({})], [89, 769]);
    const cost = await costIn(
      () => room.countText(url, 'gpt-4o'),
      () => tokensOf({}),
    );
    assert.ok(cost < 0.2, `${cost.toFixed(2)} of what its characters cost as a text`);
  });

  it('is exact across cuts of ordinary text', async () => {
    const { Tiktoken } = require('tiktoken/lite');
    for (const [model, encoding] of [
      ['gpt-4o', 'o200k_base'],
      ['gpt-4', 'cl100k_base'],
    ] as const) {
      const ranks = require(`tiktoken/encoders/${encoding}.json`);
      const whole = new Tiktoken(ranks.bpe_ranks, ranks.special_tokens, ranks.pat_str);
      const samples = [
        "It's the client's report; don't we've to re-send it? ".repeat(200),
        chinese.repeat(400),
        '{"order_id":"A-1","state":"shipped","events":[{"at":"2026-11-30T10:00:00Z","note":"到达 上海"}]}\n'.repeat(80),
        'Ünïcödé café naïve e\u0301te\u0301 👍🏽👨‍👩‍👧 mixed Wörds, and CamelCaseWords too. '.repeat(150),
      ];
      for (const text of samples) assert.equal(await room.countText(text, model), whole.encode_ordinary(text).length, text.slice(0, 20));
      whole.free();
    }
  });

  it('cuts no surrogate pair and loses nothing, whatever the text', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.string({ unit: 'grapheme' }), fc.constant('👍'.repeat(700)), fc.constant('a'.repeat(1500)), fc.constant(chinese.repeat(60)))),
        (parts) => {
          const text = parts.join('');
          const pieces = [...cutPieces(text)];
          assert.equal(pieces.join(''), text);
          for (const piece of pieces) assert.ok(piece.length <= 1001 && !/\p{Cs}/u.test(piece));
        },
      ),
      { numRuns: 100 },
    );
  });

  it('of huge texts leaves the event loop free and delays no small count (field report 31)', async () => {
    await room.countText('warm', 'gpt-4o');
    const texts = ['a'.repeat(200_000), '订单查询物流快递'.repeat(2500), Buffer.alloc(750_000, 'hermes\u0001\u0002base').toString('base64')];
    const big = Promise.all(texts.map((text) => room.countText(text, 'gpt-4o')));
    let over = false;
    const counts = big.finally(() => {
      over = true;
    });
    const started = performance.now();
    let lag = 0;
    let slowest = 0;
    let rounds = 0;
    while (!over) {
      const began = performance.now();
      await new Promise((resolve) => setTimeout(resolve, 1));
      lag = Math.max(lag, performance.now() - began);
      const asked = performance.now();
      await room.countText(`small ${rounds++}`, 'gpt-4o');
      slowest = Math.max(slowest, performance.now() - asked);
    }
    const whole = performance.now() - started;
    const [letters, characters] = await counts;
    assert.equal(letters, 25_000);
    assert.ok(Math.abs((characters ?? 0) - 12_500) <= 60, `${characters}`);
    // Were they counted first, or on this thread, there would be three rounds at most, one of them as long as the whole.
    assert.ok(rounds > 10 && lag < whole / 2 && slowest < whole / 2, `${rounds} rounds, lag ${lag}, slowest ${slowest} of ${whole} ms`);
  });
});

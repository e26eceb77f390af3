import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { HermesError } from '../../src/contracts/errors.ts';
import type { GuardConfig } from '../../src/contracts/guards.ts';
import type { Batch } from '../../src/contracts/stream.ts';
import type { OutputGuard } from '../../src/guards/guarded-answer.ts';
import { GuardedStream } from '../../src/guards/guarded-stream.ts';
import type { GuardSet } from '../../src/guards/rules.ts';
import { Vault } from '../../src/guards/vault.ts';
import { batchOf, makeChunk, toBatch } from '../../src/wire/batch.ts';
import type { ChatChunk, ChunkChoice, Delta } from '../../src/wire/chat.ts';
import { collect } from '../../src/wire/collect.ts';
import { setSignedThinking, signedThinkingOf } from '../../src/wire/signed-thinking.ts';
import { replay } from '../../src/wire/streams.ts';
import { everything, guardSet, PLANTED } from './guard-kit.ts';

const chunk = (choices: ChunkChoice[], more: object = {}): ChatChunk => ({
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices,
  ...more,
});
const delta = (value: Delta, index = 0): ChatChunk => chunk([{ index, delta: value, finish_reason: null }]);
const stop = chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]);
const args = (text: string, index = 0): ChatChunk => delta({ tool_calls: [{ index, function: { arguments: text } }] });
const each = (chunks: ChatChunk[]): Batch[] => chunks.map((one) => batchOf([makeChunk(one)]));

const all = guardSet(everything);
function guardOf(set: GuardSet = all, vault = new Vault()): OutputGuard {
  const onHit = ({ guard }: { guard: GuardConfig }): void => {
    if (guard.action === 'block') throw new HermesError('content_policy_violation', 'no');
  };
  return { rules: set.output, vault, size: undefined, onHit };
}
const run = (batches: Batch[], guard = guardOf()) => collect(new GuardedStream(replay(batches), guard));
const cuts = (text: string): [string, string][] => Array.from({ length: text.length - 1 }, (_, at) => [text.slice(0, at + 1), text.slice(at + 1)]);

const blocking = guardSet([{ id: 'x', kind: 'pii' }]);

describe('a guarded stream', () => {
  it('hides every planted value in every text, cut at every place, in one batch or two', async () => {
    for (const value of [PLANTED.card[0], PLANTED.phone[1], PLANTED.api_key[0], PLANTED.email[0]]) {
      for (const [one, two] of cuts(`is ${value}, ok`)) {
        for (const field of ['content', 'reasoning_content', 'refusal'] as const) {
          const parts = [delta({ [field]: one }), delta({ [field]: two }), stop];
          for (const batches of [each(parts), [batchOf(parts.map(makeChunk))]]) {
            const said = (await run(batches)).choices[0]?.message[field];
            assert.match(String(said), /^is ⟦\w+_1⟧, ok$/, `${field}: ${one}|${two}`);
          }
        }
      }
    }
  });

  it('keeps the arguments of calls apart and whole', async () => {
    const card = PLANTED.card[1];
    for (const [one, two] of cuts(`{"card":${card},"text":"to ${card}"}`)) {
      const open = (index: number) => delta({ tool_calls: [{ index, id: `call_${index}`, type: 'function', function: { name: 'pay', arguments: '' } }] });
      const parts = [
        delta({ content: 'I pay' }),
        open(0),
        args(one),
        args(two),
        open(1),
        args(one, 1),
        args(two, 1),
        chunk([{ index: 0, delta: {}, finish_reason: 'tool_calls' }]),
      ];
      const { message, finish_reason } = (await run(each(parts))).choices[0] ?? {};
      assert.deepEqual(
        message?.tool_calls?.map(({ id, function: made }) => [id, JSON.parse(made.arguments)]),
        [0, 1].map((index) => [`call_${index}`, { card: '⟦card_1⟧', text: 'to ⟦card_1⟧' }]),
      );
      assert.deepEqual([message?.content, finish_reason], ['I pay', 'tool_calls']);
    }
  });

  it('keeps choices apart, and what it holds goes out before the finish', async () => {
    const parts = [
      delta({ content: '4111 1111 ' }),
      delta({ content: '13812' }, 1),
      delta({ content: '1111 1111' }),
      delta({ content: '345678' }, 1),
      chunk([
        { index: 1, delta: {}, finish_reason: 'stop' },
        { index: 0, delta: { content: '!' }, finish_reason: 'stop' },
      ]),
    ];
    const stream = new GuardedStream(replay(each(parts)), guardOf());
    const order: unknown[] = [];
    for (let batch = await stream.read(); batch; batch = await stream.read())
      for (const { view } of batch.chunks)
        for (const { index, delta: given, finish_reason } of view.choices) order.push([index, given?.content, finish_reason]);
    const said = order.filter((entry) => Array.isArray(entry) && entry.some((value, at) => at > 0 && value));
    assert.deepEqual(said, [
      [1, '⟦phone_1⟧', null],
      [1, undefined, 'stop'],
      [0, '⟦card_1⟧!', 'stop'],
    ]);
  });

  it('looks at what comes whole beside the text: sources, members that nobody knows, around the choices too', async () => {
    const found = { title: `by ${PLANTED.email[0]}`, url: 'https://a.example/b' };
    const parts = [
      delta({ content: 'see' }),
      delta({ annotations: [{ type: 'url_citation', url_citation: found }], aside: PLANTED.phone[0] }),
      chunk([{ index: 0, delta: { content: ' it' }, finish_reason: null, note: PLANTED.card[1] }], { search_results: [found] }),
      stop,
    ];
    for (const batches of [each(parts), [batchOf(parts.map(makeChunk))]]) {
      const stream = new GuardedStream(replay(batches), guardOf());
      let said = '';
      for (let batch = await stream.read(); batch; batch = await stream.read()) for (const { view } of batch.chunks) said += JSON.stringify(view);
      assert.doesNotMatch(said, /bob|138|4111/);
      assert.deepEqual([said.match(/by ⟦email_1⟧/g)?.length, said.includes('"aside":"⟦phone_1⟧"'), said.includes('"note":"⟦card_1⟧"')], [2, true, true]);
      await assert.rejects(run(batches, guardOf(blocking)), /no/);
    }
    const plain = batchOf([makeChunk(delta({ annotations: [{ title: 'nothing' }] }))]);
    assert.equal(await new GuardedStream(replay([plain]), guardOf()).read(), plain);
  });

  it('knows every member that is text in pieces, cut at every place', async () => {
    const value = PLANTED.card[1];
    const inside: ((piece: string) => Delta)[] = [
      (piece) => ({ function_call: { arguments: piece } }),
      (piece) => ({ audio: { transcript: piece } }),
      (piece) => ({ content: 'x', unheard_of: piece }),
      (piece) => ({ reasoning: piece, reasoning_details: [{ type: 'reasoning.text', index: 0, text: piece }] }),
      (piece) => ({ tool_calls: [{ index: 0, custom: { input: piece } }] }),
    ];
    for (const toDelta of inside) {
      for (const [one, two] of cuts(`"is ${value}, ok"`)) {
        const stream = new GuardedStream(replay(each([delta(toDelta(one)), delta(toDelta(two)), stop])), guardOf());
        const texts = new Map<string, string>();
        const note = (value: unknown, path: string): void => {
          if (typeof value === 'string') texts.set(path, (texts.get(path) ?? '') + value);
          else if (typeof value === 'object' && value) for (const [key, member] of Object.entries(value)) note(member, `${path}.${key}`);
        };
        for (let batch = await stream.read(); batch; batch = await stream.read()) for (const { view } of batch.chunks) note(view.choices[0]?.delta, '');
        const said = [...texts.values()].filter((text) => text.includes('s '));
        assert.ok(said.length > 0 && said.every((text) => text === '"is ⟦card_1⟧, ok"'), JSON.stringify([...texts]));
      }
    }
  });

  it('gives what it holds when the stream ends without a finish', async () => {
    assert.equal((await run(each([delta({ content: 'no dot at the end' })]))).choices[0]?.message.content, 'no dot at the end');
  });

  it('passes bytes on as they came where nothing is found or held', async () => {
    const bytes = Buffer.from(`data: ${JSON.stringify(delta({ content: '你好，' }))}\n\n`);
    const batch = toBatch(bytes, false);
    assert.equal(await new GuardedStream(replay([batch]), guardOf()).read(), batch);
  });

  it('breaks off where a guard blocks, and stops the upstream', async () => {
    for (const [one, two] of cuts('my card is 4111 1111 1111 1111 ok')) {
      let cancelled = false;
      const stopped = (): void => {
        cancelled = true;
      };
      const source = replay(each([delta({ content: one }), delta({ content: two }), stop]));
      const stream = new GuardedStream({ read: () => source.read(), cancel: stopped }, guardOf(blocking));
      let said = '';
      await assert.rejects(async () => {
        for (let batch = await stream.read(); batch; batch = await stream.read())
          for (const { view } of batch.chunks) said += view.choices[0]?.delta?.content ?? '';
      }, /no/);
      assert.ok(cancelled && !said.includes('4'), said);
    }
  });

  it('does not let tokens spell what was taken out', async () => {
    const logprobs = { content: [{ token: '4111', logprob: 0 }] };
    const { choices } = await run(each([chunk([{ index: 0, delta: { content: PLANTED.card[0] }, logprobs, finish_reason: null }]), stop]));
    assert.doesNotMatch(JSON.stringify(choices), /4111/);
  });

  it('leaves signed thinking as it is signed, or takes it out', async () => {
    const vault = new Vault();
    vault.keep('card', '4111 1111 1111 1111');
    const told = async (thinking: string) => {
      const carrying = delta({ content: 'So: ⟦card_1⟧.' });
      setSignedThinking(carrying, [{ type: 'thinking', thinking, signature: 's' }]);
      const stream = new GuardedStream(replay(each([delta({ reasoning_content: thinking }), carrying, stop])), guardOf(all, vault));
      const views: ChatChunk[] = [];
      for (let batch = await stream.read(); batch; batch = await stream.read()) views.push(...batch.chunks.map(({ view }) => view));
      const text = (field: 'content' | 'reasoning_content') => views.map(({ choices }) => choices[0]?.delta?.[field] ?? '').join('');
      return [text('reasoning_content'), text('content'), views.flatMap((view) => signedThinkingOf(view)).length];
    };
    assert.deepEqual(await told('I charge ⟦card_1⟧ now'), ['I charge ⟦card_1⟧ now', 'So: 4111 1111 1111 1111.', 1]);
    assert.deepEqual(await told('I call 13812345678 now'), ['I call ⟦phone_1⟧ now', 'So: 4111 1111 1111 1111.', 0]);
  });
});

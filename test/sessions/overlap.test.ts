import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import type { StoredMessage } from '../../src/contracts/cold-store.ts';
import { findOverlap } from '../../src/sessions/overlap.ts';
import type { ChatMessage } from '../../src/wire/chat.ts';
import { answer, call, type House, house, result, sharedContext, story, system, user, view } from './session-kit.ts';

const stored = (...messages: ChatMessage[]): StoredMessage[] => messages.map((message) => ({ message, tokens: 1 }));
const u = (text: string): ChatMessage => user(text);
const a = (text: string): ChatMessage => answer(text);
const hidden = [call('s1'), result('s1')];

const H = stored(u('1'), a('A'), u('2'), a('B'));
const rows: [name: string, history: ReturnType<typeof stored>, sent: ChatMessage[], keep: number, fresh: string[]][] = [
  ['only what is new', H, [u('3')], 4, ['u:3']],
  ['two new questions', H, [u('3'), u('4')], 4, ['u:3', 'u:4']],
  ['the same question again', H, [u('2')], 4, ['u:2']],
  ['everything', H, [u('1'), a('A'), u('2'), a('B'), u('3')], 4, ['u:3']],
  ['everything and nothing new', H, [u('1'), a('A'), u('2'), a('B')], 4, []],
  ['the tail', H, [u('2'), a('B'), u('3')], 4, ['u:3']],
  ['the tail from an answer on', H, [a('B'), u('3')], 4, ['u:3']],
  ['more than the window holds', H, [u('0'), a('Z'), u('1'), a('A'), u('2'), a('B'), u('3')], 4, ['u:3']],
  ['the same question in a whole history', H, [u('1'), a('A'), u('2'), a('B'), u('2')], 4, ['u:2']],
  ['the last question anew', H, [u('1'), a('A'), u('2')], 2, ['u:2']],
  ['another answer', H, [u('1'), a('other'), u('2b')], 1, ['a:other', 'u:2b']],
  ['another question', H, [u('1'), a('A'), u('2b')], 2, ['u:2b']],
  ['another second half', H, [u('1'), a('A'), u('2b'), a('Bb'), u('3')], 2, ['u:2b', 'a:Bb', 'u:3']],
  ['another history', H, [u('x'), a('y'), u('z')], 0, ['u:x', 'a:y', 'u:z']],
  ['a tail with another answer', H, [u('2'), a('other'), u('3')], 3, ['a:other', 'u:3']],
  ['the beginning of a talk that repeats itself', stored(u('1'), a('A'), u('1'), a('A')), [u('1'), a('A'), u('2')], 4, ['u:2']],
  ['all of a talk that repeats itself', stored(u('1'), a('A'), u('1'), a('A')), [u('1'), a('A'), u('1'), a('A'), u('2')], 4, ['u:2']],
  ['a text as parts', H, [user([{ type: 'text', text: '1' }]), answer([{ type: 'text', text: 'A' }]), u('2'), a('B'), u('3')], 4, ['u:3']],
  ['a trimmed answer', stored(u('1'), a(' A\n')), [u('1'), a('A'), u('2')], 2, ['u:2']],
  ['an answer without its reasoning', stored(u('1'), answer('A', { reasoning_content: 'hm' })), [u('1'), a('A'), u('2')], 2, ['u:2']],
  [
    'null for an empty answer',
    stored(u('1'), call('c'), result('c'), a('A')),
    [u('1'), { ...call('c'), content: '' }, result('c'), a('A'), u('2')],
    4,
    ['u:2'],
  ],
  ['a result for the open call', stored(u('1'), call('c')), [result('c')], 2, ['t:result of c']],
  ['another result for an answered call', stored(u('1'), call('c'), result('c'), a('A')), [result('c', 'b')], 2, ['t:b']],
  [
    'one of two results again, with a question',
    stored(u('1'), call('c', 'd'), result('c'), result('d'), a('A'), u('2'), a('B')),
    [result('c', 'b'), u('3')],
    2,
    ['t:result of d', 't:b', 'u:3'],
  ],
  ['a result of a call whose id came before', stored(u('1'), call('c'), result('c'), a('A'), u('2'), call('c')), [result('c')], 6, ['t:result of c']],
  ['everything with the result', stored(u('1'), call('c')), [u('1'), call('c'), result('c')], 2, ['t:result of c']],
  ['without the rounds that hermes ran', stored(u('1'), ...hidden, a('A'), u('2'), ...hidden, a('B')), [u('1'), a('A'), u('2'), a('B'), u('3')], 8, ['u:3']],
  ['the last question anew, without the rounds', stored(u('1'), ...hidden, a('A'), u('2'), ...hidden, a('B')), [u('1'), a('A'), u('2')], 4, ['u:2']],
  [
    'a mixed answer as the caller saw it',
    stored(u('1'), call('s', 'c'), result('s'), result('c'), a('A')),
    [u('1'), call('c'), result('c'), a('A'), u('2')],
    5,
    ['u:2'],
  ],
  [
    'what the caller saw of an answer it broke off',
    [...stored(u('1')), { message: a('some text and'), tokens: 1, partial: true }],
    [u('1'), a('some te'), u('2')],
    2,
    ['u:2'],
  ],
  [
    'an image again',
    stored(user([{ type: 'image_url', image_url: { url: 'x' } }]), a('A')),
    [user([{ type: 'image_url', image_url: { url: 'x' } }]), a('A'), u('2')],
    2,
    ['u:2'],
  ],
  [
    'another image',
    stored(user([{ type: 'image_url', image_url: { url: 'x' } }]), a('A')),
    [user([{ type: 'image_url', image_url: { url: 'y' } }]), a('A'), u('2')],
    0,
    ['u:', 'a:A', 'u:2'],
  ],
  ['a question with the beginning of its answer', H, [u('3'), a('The answer is')], 4, ['u:3', 'a:The answer is']],
  ['everything with the beginning of an answer', H, [u('1'), a('A'), u('2'), a('B'), u('3'), a('The answer is')], 4, ['u:3', 'a:The answer is']],
  ['anything to nothing', [], [u('1'), a('A'), u('2')], 0, ['u:1', 'a:A', 'u:2']],
];

describe('the overlap of what is sent with what is stored', () => {
  for (const [name, history, sent, keep, fresh] of rows) {
    it(`tells ${name}`, () => {
      const overlap = findOverlap(history, sent);
      assert.deepEqual([overlap.keep, view(overlap.fresh)], [keep, fresh]);
    });
  }

  it('doubles and loses nothing of any talk, sent whole, from any turn on, or newest only', () => {
    const text = fc.constantFrom('a', 'b', 'c', 'd', '');
    const turn = fc.record({ asked: fc.constantFrom('a', 'b', 'c', 'd'), answered: text, rounds: fc.boolean() });
    fc.assert(
      fc.property(fc.array(turn, { minLength: 1, maxLength: 8 }), fc.nat(), fc.boolean(), (turns, from, seesRounds) => {
        const whole = turns.flatMap(({ asked, answered, rounds }, index) => [
          u(asked),
          ...(rounds ? [call(`c${index}`), result(`c${index}`)] : []),
          answer(`${answered}${index}`),
        ]);
        const start = turns.slice(0, from % turns.length).reduce((sum, { rounds }) => sum + (rounds ? 4 : 2), 0);
        const seen = whole.slice(start).filter((message) => seesRounds || (message.role !== 'tool' && !message.tool_calls));
        const overlap = findOverlap(stored(...whole), [...seen, u('new')]);
        assert.deepEqual([overlap.keep, view(overlap.fresh)], [whole.length, ['u:new']]);
      }),
      { numRuns: 300 },
    );
  });

  it('goes with the caller from any difference on', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 12 }), fc.nat(), (length, where) => {
        const whole = Array.from({ length: length * 2 }, (_, index) => (index % 2 === 0 ? u(`${index}`) : a(`${index}`)));
        const at = where % whole.length;
        const edited = whole.map((message, index) => (index === at ? { ...message, content: 'edited' } : message));
        const overlap = findOverlap(stored(...whole), [...edited, u('new')]);
        assert.deepEqual(view([...whole.slice(0, overlap.keep), ...overlap.fresh]), view([...edited, u('new')]));
        assert.equal(overlap.keep, at);
      }),
      { numRuns: 100 },
    );
  });
});

describe('a caller that resends', () => {
  let h: House;
  before(async () => {
    h = await house({ session: { max_history_messages: 6 } });
  });
  after(async () => {
    await h.close();
    await sharedContext.close();
  });

  it('everything each time doubles nothing, also beyond the window', async () => {
    const messages: ChatMessage[] = [system('be brief')];
    let seen: string[] | undefined;
    const texts = Array.from({ length: 8 }, (_, index) => `q${index}`);
    for (const text of texts) {
      messages.push(u(text));
      const told = await h.say('all', '', { messages: [...messages] });
      seen = told.seen;
      messages.push(a(told.text));
    }
    assert.deepEqual(seen, ['s:be brief', ...story(...texts).slice(-7)]);
    assert.equal((await h.stored('all')).length, 16);
  });

  it('a history that differs is followed; cold keeps both', async () => {
    for (const text of ['1', '2', '3']) await h.say('edit', text);
    const told = await h.say('edit', '', { messages: [u('1'), a('re: 1'), u('2 edited')] });
    assert.deepEqual(told.seen, ['u:1', 'a:re: 1', 'u:2 edited']);
    assert.deepEqual((await h.say('edit', 'next')).seen, ['u:1', 'a:re: 1', 'u:2 edited', 'a:re: 2 edited', 'u:next']);
    await h.hot.deleteSession('shop:edit');
    assert.deepEqual((await h.say('edit', 'again')).seen?.slice(-3), ['u:next', 'a:re: next', 'u:again']);
    assert.deepEqual(await h.stored('edit'), ['u:1', 'a:re: 1', 'u:2 edited', 'a:re: 2 edited', 'u:next', 'a:re: next', 'u:again', 'a:re: again']);
  });

  it('a history that differs before the window is followed from there', async () => {
    const texts = Array.from({ length: 6 }, (_, index) => `q${index}`);
    for (const text of texts) await h.say('early', text);
    const told = await h.say('early', '', { messages: [u('q0'), a('re: q0'), u('q1 edited')] });
    assert.deepEqual(told.seen, ['u:q0', 'a:re: q0', 'u:q1 edited']);
    assert.deepEqual(await h.stored('early'), ['u:q0', 'a:re: q0', 'u:q1 edited', 'a:re: q1 edited']);
  });

  it('an unknown history is followed whole', async () => {
    for (const text of ['1', '2', '3', '4', '5']) await h.say('other', text);
    await h.say('other', '', { messages: [u('x'), a('y'), u('z')] });
    assert.deepEqual(await h.stored('other'), ['u:x', 'a:y', 'u:z', 'a:re: z']);
  });
});

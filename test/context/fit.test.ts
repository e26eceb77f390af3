import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import fc from 'fast-check';
import { HermesError } from '../../src/contracts/errors.ts';
import type { ChatMessage } from '../../src/wire/chat.ts';
import { messageText } from '../../src/wire/chat.ts';
import { configOf, fit, hellos, room, target, tokensOf } from './context-kit.ts';

const user = (content: string): ChatMessage => ({ role: 'user', content });
const answer = (content: string): ChatMessage => ({ role: 'assistant', content });
const system = (content: string): ChatMessage => ({ role: 'system', content });
const call = (...ids: string[]): ChatMessage => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'look', arguments: '{}' } })),
});
const result = (id: string, content: string): ChatMessage => ({ role: 'tool', tool_call_id: id, content });

/** Why a strict upstream would refuse it. */
function unlawful(messages: readonly ChatMessage[]): string | undefined {
  const open = new Set<string>();
  for (const message of messages) {
    if (message.role === 'tool') {
      if (!open.delete(message.tool_call_id ?? '')) return `result of ${message.tool_call_id} without its call`;
      continue;
    }
    if (open.size > 0) return 'a call without its result';
    for (const one of message.tool_calls ?? []) open.add(one.id);
  }
  return open.size > 0 ? 'a call without its result' : undefined;
}
async function refused(promise: Promise<unknown>): Promise<HermesError> {
  try {
    await promise;
  } catch (thrown) {
    assert.ok(thrown instanceof HermesError);
    assert.equal(thrown.code, 'context_length_exceeded');
    assert.equal(thrown.status, 400);
    return thrown;
  }
  throw new Error('it was not refused');
}
const ROOM = 800;

describe('fitting a request to a target', () => {
  after(() => room.close());

  it('leaves what fits as it is: the same object', async () => {
    const messages = [system('be kind'), user('hi')];
    const { request, dropped } = await fit(messages);
    assert.equal(request.messages, messages);
    assert.equal(dropped, 0);
  });

  it('forces the cut at every position, and never parts a call from its results (field report 30)', async () => {
    const history = [
      system('be kind'),
      user(`first ${hellos(50)}`),
      call('c1', 'c2'),
      result('c1', hellos(60)),
      result('c2', hellos(60)),
      answer(hellos(50)),
      user(`second ${hellos(50)}`),
      call('c3'),
      result('c3', hellos(90)),
      answer(hellos(40)),
    ];
    const lengths = new Set<number>();
    for (let size = 20; size < 780; size += 10) {
      const messages = [...history, user(hellos(size))];
      const { request, kept, dropped } = await fit(messages);
      assert.equal(unlawful(request.messages), undefined, `at ${size}`);
      assert.equal(request.messages[0], messages[0]);
      assert.equal(request.messages.at(-1), messages.at(-1));
      assert.deepEqual(request.messages.slice(1), messages.slice(messages.length - request.messages.length + 1), `without gaps at ${size}`);
      assert.ok((await tokensOf(request.messages)) <= ROOM);
      assert.equal(kept + dropped, messages.length);
      lengths.add(request.messages.length);
    }
    assert.deepEqual(
      [...lengths].sort((a, b) => a - b),
      [2, 3, 5, 6, 7, 10, 11],
    );
  });

  it('keeps the reserve free', async () => {
    await fit([user(hellos(780))]);
    await refused(fit([user(hellos(860))]));
  });

  it('says the numbers when the window cannot hold the least', async () => {
    const error = await refused(fit([user(hellos(5000))]));
    assert.match(error.message, /\b5007\b/);
    assert.match(error.message, /\b1100\b/);
    await refused(fit([system(hellos(900)), user('hi')]));
    const tools = [{ type: 'function', function: { name: 'f', description: hellos(900), parameters: {} } }];
    await refused(fit([user('hi')], { request: { tools } }));
  });

  it('lets the system prompt and the newest message go alone when only max_context_tokens is passed', async () => {
    const messages = [system('be kind'), user('old'), answer('older'), user(hellos(1500))];
    const { request } = await fit(messages, { target: target({ contextWindow: undefined }) });
    assert.deepEqual(request.messages, [messages[0], messages[3]]);
  });

  it('leaves room for the answer that is asked for, at most what the target gives', async () => {
    const small = target({ contextWindow: 900, maxTokens: 300 });
    await fit([user(hellos(380))], { target: small });
    await refused(fit([user(hellos(450))], { target: small }));
    await fit([user(hellos(450))], { target: small, request: { max_tokens: 200 } });
    await refused(fit([user(hellos(450))], { target: small, request: { max_completion_tokens: 4000 } }));
  });

  it('keeps the exchange that the model is to answer', async () => {
    const messages = [user(hellos(300)), answer(hellos(300)), user('q'), call('c'), result('c', hellos(350))];
    const { request } = await fit(messages);
    assert.deepEqual(request.messages.slice(-3), messages.slice(-3));
  });

  it('counts by the encoding of the target', async () => {
    const text = '我买的东西怎么还没到，快递什么时候能到？'.repeat(40);
    await fit([user(text)]);
    await refused(fit([user(text)], { target: target({ modelName: 'gpt-4' }) }));
  });
});

describe('what fitting does and does not touch', () => {
  after(() => room.close());

  it('summarises oversized tool results before anything is dropped', async () => {
    const huge = JSON.stringify({ order_id: '1', tracks: Array.from({ length: 200 }, (_, index) => ({ place: `place-${index}-end`, note: hellos(5) })) });
    const messages = [user('old question'), answer('old answer'), user('q'), call('c'), result('c', huge)];
    const { request, dropped } = await fit(messages);
    assert.equal(dropped, 0);
    const value = JSON.parse(messageText(request.messages.at(-1) as ChatMessage));
    assert.equal(value.order_id, '1');
    assert.deepEqual(
      value.tracks.slice(1).map(({ place }: { place: string }) => place),
      ['place-197-end', 'place-198-end', 'place-199-end'],
    );
    assert.match(value.tracks[0], /197 earlier items omitted/);
    assert.equal(messages.at(-1)?.content, huge, 'the whole stays with the caller');
  });

  it('reduces a tool with a summary always, another only when it must', async () => {
    const tool = { id: 'look', endpoint: 'http://127.0.0.1:1/look', summary: { keep_last: 2, max_tokens: 50 } };
    const list = JSON.stringify(Array.from({ length: 40 }, (_, index) => `item ${index}`));
    const messages = [user('q'), call('c'), result('c', list)];
    const reduced = (await fit(messages, { config: configOf({}, { tools: [tool] }) })).request.messages;
    assert.deepEqual(JSON.parse(messageText(reduced[2] as ChatMessage)), ['[38 earlier items omitted]', 'item 38', 'item 39']);
    assert.equal((await fit(messages)).request.messages, messages);
  });

  it('does not touch a request without a session unless it is told to', async () => {
    const messages = [user(hellos(900)), answer('x'), user(hellos(300))];
    assert.equal((await fit(messages, { session: false })).request.messages, messages);
    const { request } = await fit(messages, { session: false, config: configOf({}, { trim: { stateless: true } }) });
    assert.deepEqual(request.messages, [messages[1], messages[2]]);
  });

  it('never passes the budget, parts nothing, keeps order and what must stay, and is idempotent', async () => {
    const words = fc.integer({ min: 0, max: 160 }).map(hellos);
    const turn = fc.record({ asked: words, calls: fc.integer({ min: 0, max: 3 }), found: words, said: words });
    await fc.assert(
      fc.asyncProperty(fc.option(words), fc.array(turn, { maxLength: 8 }), words, fc.boolean(), async (prompt, turns, last, continues) => {
        const messages = [
          ...(prompt === null ? [] : [system(prompt)]),
          ...turns.flatMap(({ asked, calls, found, said }, index) => {
            const ids = Array.from({ length: calls }, (_, number) => `c${index}-${number}`);
            return [user(asked), ...(calls > 0 ? [call(...ids), ...ids.map((id) => result(id, found))] : []), answer(said)];
          }),
          user(last),
          ...(continues ? [call('now'), result('now', hellos(30))] : []),
        ];
        const { request } = await fit(messages);
        assert.ok((await tokensOf(request.messages)) <= ROOM);
        assert.equal(unlawful(request.messages), undefined);
        const places = request.messages.map((message) => messages.indexOf(message));
        assert.deepEqual(
          places,
          [...places].sort((a, b) => a - b),
        );
        assert.ok(!places.includes(-1));
        for (const must of messages.filter((message, index) => message.role === 'system' || index === messages.findLastIndex(({ role }) => role === 'user')))
          assert.ok(request.messages.includes(must));
        assert.deepEqual((await fit(request.messages)).request.messages, request.messages);
      }),
      { numRuns: 60 },
    );
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { HermesError } from '../../src/contracts/errors.ts';
import type { ChatMessage } from '../../src/wire/chat.ts';
import { answer, call, fails, type House, house, result, says, sharedContext, story, streams, system, user, view } from './session-kit.ts';

const broken = (): HermesError => new HermesError('upstream_error', 'The upstream broke.');
const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe('a session turn', () => {
  let h: House;
  before(async () => {
    h = await house();
  });
  after(async () => {
    await h.close();
    await sharedContext.close();
  });

  it('sees the turns before it, streamed or whole', async () => {
    for (const [index, text] of ['one', 'two', 'three'].entries()) await h.say('a', text, { stream: index % 2 === 0 });
    assert.deepEqual((await h.say('a', 'four')).seen, story('one', 'two', 'three', 'four'));
    assert.deepEqual(await h.stored('a'), [...story('one', 'two', 'three', 'four'), 'a:re: four']);
  });

  it('is stored before the client learns of its end', async () => {
    const told = await h.say('durable', 'one', { stream: true });
    assert.equal(told.text, 're: one');
    assert.equal(told.exchange.answer?.holdFinish, true);
    assert.deepEqual(await h.stored('durable'), ['u:one', 'a:re: one']);
  });

  it('tells how many stored messages went before the request', async () => {
    await h.say('count', 'one');
    const told = await h.say('count', 'two');
    assert.equal(told.exchange.answer?.facts.sessionMessages, 2);
    assert.equal(told.exchange.session?.historyMessages, 2);
    assert.ok((told.exchange.session?.historyTokens ?? 0) > 4);
  });

  it('of another project is another session, whatever the id', async () => {
    await h.say('x:b', 'secret', { project: 'p' });
    assert.deepEqual((await h.say('b', 'q', { project: 'p:x' })).seen, ['u:q']);
    assert.deepEqual((await h.say('x:b', 'q', { project: 'other' })).seen, ['u:q']);
  });

  it('takes any name that is one, and refuses what is none', async () => {
    for (const name of ['__proto__', 'constructor', '../../p', '订单-42 №', "o'); --", 'x'.repeat(256)]) {
      await h.say(name, 'one');
      assert.deepEqual((await h.say(name, 'two')).seen, story('one', 'two'), name);
    }
    for (const name of ['a\u0000b', 'a\nb', '\u007f', '\u0085', 'x'.repeat(257), '\ud800']) {
      const told = await h.say(name, 'one');
      assert.equal(told.status, 400, JSON.stringify(name));
      assert.equal(told.error?.param, 'session_id');
      assert.equal(told.seen, undefined);
    }
  });

  it('that fails leaves no trace, whole or streamed, before content or after', async () => {
    await h.say('f', 'one');
    await h.say('f', 'bad', { model: () => fails(broken()) });
    await h.say('f', 'bad', { model: () => streams('frag', 'ment', broken()), stream: true });
    await h.say('f', 'bad', {
      model: () => {
        throw new Error('plugin');
      },
    });
    assert.deepEqual((await h.say('f', 'two')).seen, story('one', 'two'));
  });

  it('that the client broke off is stored as far as it went, marked', async () => {
    await h.say('p', 'long', { model: () => streams('some ', 'text ', 'never read', '.stop'), stream: true, leaveAfter: 2 });
    const state = await h.cold.readSession('shop', 'p', 10);
    assert.deepEqual(
      state?.messages.map(({ message, partial }) => [message.content, partial]),
      [
        ['long', undefined],
        ['some text ', true],
      ],
    );
    assert.deepEqual((await h.say('p', 'next')).seen, ['u:long', 'a:some text ', 'u:next']);
  });

  it('that the client left before content, or that was no stream, leaves no trace', async () => {
    await h.say('q', 'long', { model: () => streams({ role: 'assistant' }, 'text', '.stop'), stream: true, leaveAfter: 1 });
    await h.say('q', 'long', { model: () => fails(new HermesError('client_closed', 'gone')) });
    await h.say('q', 'long', { model: () => streams('text', 'more', '.stop'), stream: false, leaveAfter: 1 });
    assert.deepEqual(await h.stored('q'), []);
  });

  it('broken off within a tool call keeps the text and no half call', async () => {
    const half = { tool_calls: [{ index: 0, id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a' } }] };
    await h.say('half', 'x', { model: () => streams('let me see', half, '.stop'), stream: true, leaveAfter: 2 });
    assert.deepEqual(await h.stored('half'), ['u:x', 'a:let me see']);
    await h.say('half2', 'x', { model: () => streams(half, '.stop'), stream: true, leaveAfter: 1 });
    assert.deepEqual(await h.stored('half2'), []);
  });

  it('of a fallback is marked degraded (field report 29)', async () => {
    await h.say('d', 'x', { model: () => says(answer('sorry, the small model'), { degraded: true }) });
    const state = await h.cold.readSession('shop', 'd', 10);
    assert.deepEqual(
      state?.messages.map(({ degraded }) => degraded),
      [undefined, true],
    );
  });

  it('stores the first of several choices', async () => {
    const body = {
      choices: [
        { index: 1, message: answer('second'), finish_reason: 'stop' },
        { index: 0, message: answer('first'), finish_reason: 'stop' },
      ],
    };
    await h.say('n', 'x', {
      model: (exchange) => {
        exchange.answer = { body };
        return exchange.answer as NonNullable<typeof exchange.answer>;
      },
    });
    assert.deepEqual(await h.stored('n'), ['u:x', 'a:first']);
  });
});

describe('tool calls and the request itself in a turn', () => {
  let h: House;
  before(async () => {
    h = await house();
  });
  after(async () => {
    await h.close();
    await sharedContext.close();
  });

  it("stores hermes' own tool rounds before the answer, and the text of each once", async () => {
    const rounds = [{ ...call('c1'), content: 'Let me look. ' }, result('c1')];
    const model = (text: string) => (exchange: { turnMessages?: unknown }) => {
      exchange.turnMessages = rounds;
      return text === '' ? says(answer('It is there.')) : streams('Let me look. ', 'It is there.', '.stop');
    };
    for (const [name, stream] of [['whole', false] as const, ['streamed', true] as const]) {
      await h.say(`rounds-${name}`, 'x', { model: model(stream ? 'x' : ''), stream });
      assert.deepEqual(await h.stored(`rounds-${name}`), ['u:x', 'a:Let me look. +c1', 't:result of c1', 'a:It is there.'], name);
    }
    const sent = await h.say('rounds-streamed', 'y', { messages: [user('x'), answer('Let me look. It is there.'), user('y')] });
    assert.deepEqual(sent.seen, ['u:x', 'a:Let me look. +c1', 't:result of c1', 'a:It is there.', 'u:y'], 'a client that never saw the rounds');
  });

  it('joins a client-side result to its call', async () => {
    await h.say('t', 'x', { model: () => says(call('c1', 'c2')) });
    const told = await h.say('t', '', { messages: [result('c2'), result('c1')] });
    assert.deepEqual(told.seen, ['u:x', 'a:+c1+c2', 't:result of c1', 't:result of c2']);
    assert.deepEqual((await h.say('t', 'y')).seen, ['u:x', 'a:+c1+c2', 't:result of c1', 't:result of c2', 'a:re: x', 'u:y']);
  });

  it('repairs the outgoing copy in both directions and leaves what is stored', async () => {
    await h.say('r', 'x', { model: () => says(call('c1')) });
    const told = await h.say('r', 'never mind', { messages: [result('elsewhere'), user('never mind')] });
    assert.deepEqual(told.seen, ['u:x', 'a:+c1', 't:No result: this call was not answered.', 'u:never mind']);
    assert.deepEqual(await h.stored('r'), ['u:x', 'a:+c1', 't:result of elsewhere', 'u:never mind', 'a:re: never mind']);
  });

  it('changes nothing of the stored history when a plugin changes the request in place', async () => {
    const parts = [{ type: 'text', text: 'see this' }];
    await h.say('mutate', '', { messages: [user(parts)] });
    await h.say('mutate', 'two', {
      model: (exchange) => {
        for (const message of exchange.request.messages) {
          if (Array.isArray(message.content)) for (const part of message.content) part.text = 'REDACTED';
          else message.content = 'REDACTED';
        }
        return says(answer('ok'));
      },
    });
    assert.deepEqual((await h.say('mutate', 'three')).seen, ['u:see this', 'a:re: see this', 'u:two', 'a:ok', 'u:three']);
  });

  it('leaves a request without a session alone', async () => {
    const messages = [system('a'), user('first'), result('orphan'), system('b'), user('second')];
    const told = await h.say(undefined, '', { messages });
    assert.equal(told.messages, messages);
    assert.equal(told.exchange.answer?.holdFinish, false);
  });
});

describe('the system prompt', () => {
  let h: House;
  before(async () => {
    h = await house({ session: { max_history_messages: 4 } });
  });
  after(async () => {
    await h.close();
    await sharedContext.close();
  });
  const say = (name: string, text: string, ...words: string[]) => h.say(name, text, { messages: [...words.map(system), user(text)] });

  it('is kept, replaced, never doubled, and several stay in order', async () => {
    await say('s', 'one', 'be kind', 'be brief');
    assert.deepEqual((await say('s', 'two')).seen, ['s:be kind', 's:be brief', ...story('one', 'two')]);
    assert.deepEqual((await say('s', 'three', 'be kind', 'be brief')).seen, ['s:be kind', 's:be brief', ...story('one', 'two', 'three')]);
    assert.deepEqual((await say('s', 'four', 'be short')).seen, ['s:be short', ...story('two', 'three', 'four')]);
    assert.deepEqual((await say('s', 'five')).seen, ['s:be short', ...story('three', 'four', 'five')]);
  });

  it('comes back from cold', async () => {
    await h.hot.deleteSession('shop:s');
    assert.deepEqual((await say('s', 'six')).seen, ['s:be short', ...story('four', 'five', 'six')]);
  });

  it('of the developer role counts as one', async () => {
    await h.say('dev', 'one', { messages: [{ role: 'developer', content: 'be kind' }, user('one')] });
    const told = await say('dev', 'two', 'be short');
    assert.deepEqual(told.seen, ['s:be short', ...story('one', 'two')]);
  });
});

describe('the window', () => {
  it('begins with a question and parts no call from its result, hot and cold', async () => {
    const h = await house({ session: { max_history_messages: 6 } });
    for (const text of ['0', '1', '2']) {
      await h.say('w', text, {
        model: (exchange) => {
          exchange.turnMessages = [call(`c${text}`), result(`c${text}`)];
          return says(answer(`re: ${text}`));
        },
      });
    }
    const expected = ['u:2', 'a:+c2', 't:result of c2', 'a:re: 2', 'u:3'];
    assert.deepEqual((await h.room.recall(h.config, 'shop', 'w')).history.length, 4);
    await h.hot.deleteSession('shop:w');
    assert.deepEqual((await h.say('w', '3')).seen, expected);
    assert.equal((await h.stored('w')).length, 14);
    await h.close();
    await sharedContext.close();
  });
});

describe('turns at once (field report 28)', () => {
  let h: House;
  before(async () => {
    h = await house();
  });
  after(async () => {
    await h.close();
    await sharedContext.close();
  });
  const slowly = (ms: number) => async (_exchange: unknown, seen: readonly ChatMessage[]) => {
    await wait(ms);
    return says(answer(`re: ${view(seen).at(-1)?.slice(2)}`));
  };
  const slow = (ms: number) => async () => {
    await wait(ms);
    return says(answer('slow'));
  };

  it('run one after another, in their order', async () => {
    const texts = Array.from({ length: 10 }, (_, index) => `n${index}`);
    const told = await Promise.all(texts.map((text) => h.say('c', text, { model: slowly(3) })));
    assert.deepEqual(told.at(-1)?.seen, story(...texts));
  });

  it('wait for nobody of another session', async () => {
    let over = false;
    const first = h.say('c1', 'slow', { model: slow(500) }).finally(() => {
      over = true;
    });
    await h.say('c2', 'fast');
    assert.equal(over, false);
    await first;
  });

  it('go on after one that failed, and after one whose client left', async () => {
    const bad = h.say('c3', 'bad', { model: () => wait(20).then(() => fails(broken())) });
    const good = h.say('c3', 'good');
    await Promise.all([bad, good]);
    await h.say('c3', 'left', { model: () => streams('x', 'y', '.stop'), stream: true, leaveAfter: 0 });
    assert.deepEqual((await h.say('c3', 'last')).seen, story('good', 'last'));
  });

  it('of a client that leaves the queue free its place and ask nobody', async () => {
    const first = h.say('c4', 'first', { model: slow(60) });
    const exchange = h.exchange('c4', { messages: [user('left')] });
    const left = h.say('c4', 'left', { exchange });
    const third = h.say('c4', 'third');
    await wait(10);
    exchange.cancel(new HermesError('client_closed', 'gone'));
    assert.equal((await left).error?.code, 'client_closed');
    await first;
    assert.deepEqual((await third).seen, ['u:first', 'a:slow', 'u:third']);
    assert.equal((await left).seen, undefined);
  });

  it('are refused under `reject`, and the session goes on', async () => {
    const strict = await house({ session: { concurrency: 'reject' } });
    const first = strict.say('r', 'first', { model: slow(40) });
    const second = await strict.say('r', 'second');
    assert.equal(second.status, 409);
    assert.equal(second.error?.code, 'session_busy');
    await first;
    assert.deepEqual((await strict.say('r', 'third')).seen, ['u:first', 'a:slow', 'u:third']);
    await strict.close();
  });
});

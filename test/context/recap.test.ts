import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import trimPlugin from '../../plugins/trim.ts';
import { createContextRoom } from '../../src/context/context-room.ts';
import type { ColdStore } from '../../src/contracts/cold-store.ts';
import { HermesError } from '../../src/contracts/errors.ts';
import type { Answer } from '../../src/contracts/exchange.ts';
import { recapKey } from '../../src/contracts/recap-key.ts';
import type { ContextRoom, Rooms } from '../../src/contracts/rooms.ts';
import { ExchangeAnswer } from '../../src/pipeline/answer.ts';
import { compose } from '../../src/pipeline/compose.ts';
import type { Layer } from '../../src/pipeline/entry.ts';
import createSqlJs from '../../src/stores/cold/sqljs.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { type ChatMessage, type ChatRequest, messageText } from '../../src/wire/chat.ts';
import { environment, recordLog, storeOptions } from '../stores/fixture.ts';
import { configOf, exchangeOf, hellos, target, tokensOf } from './context-kit.ts';

const user = (content: string): ChatMessage => ({ role: 'user', content });
const answer = (content: string): ChatMessage => ({ role: 'assistant', content });
const says = (content: string): Answer =>
  new ExchangeAnswer({
    body: { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices: [{ index: 0, message: answer(content), finish_reason: 'stop' }] },
  });

describe('a summary of what trimming leaves out', () => {
  let cold: ColdStore;
  const log = recordLog();
  before(async () => {
    cold = createSqlJs(storeOptions('sqlite::memory:'));
    await cold.open();
  });
  after(() => cold.close());

  const models = [
    { id: 'fast_model', provider: 'simulator' },
    { id: 'cheap', provider: 'simulator' },
  ];
  const config = configOf({ summarize_dropped: { model: 'cheap', max_tokens: 60 } }, { models });
  const history = [user('my name is Ann'), answer(hellos(400)), user(hellos(200)), answer(hellos(200)), user('who am I?')];

  /** One try with the plugin before a model that keeps what it was asked. */
  async function ask(messages: ChatMessage[], recap: () => Answer): Promise<{ asked: ChatRequest[]; recaps: ChatRequest[] }> {
    const room: ContextRoom & { close(): Promise<void> } = createContextRoom({ cold, environment, log, metrics: createMetrics() });
    const hooks =
      trimPlugin.setup?.({ rooms: { context: room as ContextRoom } as Rooms } as Parameters<NonNullable<typeof trimPlugin.setup>>[0], undefined) ?? {};
    const asked: ChatRequest[] = [];
    const recaps: ChatRequest[] = [];
    let made = (): void => undefined;
    const renewed = new Promise<void>((resolve) => {
      made = resolve;
    });
    const pipeline = compose(
      [{ name: 'trim', optional: false, hooks, local: undefined } as Layer],
      async (exchange) => {
        if (exchange.attempt?.model === 'cheap') {
          recaps.push(exchange.request);
          setImmediate(made);
          return recap();
        }
        asked.push(exchange.attempt?.request ?? exchange.request);
        return says('ok');
      },
      log,
    );
    const exchange = exchangeOf(config, { messages });
    exchange.attempt = { number: 1, model: 'fast_model', upstream: target() };
    await pipeline(exchange);
    await Promise.race([renewed, new Promise((resolve) => setTimeout(resolve, 50))]);
    await new Promise((resolve) => setTimeout(resolve, 30));
    await room.close();
    return { asked, recaps };
  }

  it('is made in the background by the cheap model, and stands in its place from then on', async () => {
    const first = await ask(history, () => says('The user is called Ann.'));
    assert.equal(first.asked[0]?.messages.length, 3);
    assert.match(messageText(first.recaps[0]?.messages[1] as ChatMessage), /my name is Ann/);
    assert.equal(first.recaps[0]?.max_tokens, 60);
    const second = await ask([{ role: 'system', content: 'be kind' }, ...history], () => says('unused'));
    const sent = second.asked[0]?.messages ?? [];
    assert.deepEqual([sent[0]?.content, messageText(sent[1] as ChatMessage).split('\n')[1]], ['be kind', 'The user is called Ann.']);
    assert.ok((await tokensOf(sent)) <= 800);
    assert.equal(second.recaps.length, 0, 'nothing more has gone');
  });

  it('grows with what goes later', async () => {
    const more = [...history, answer(hellos(200)), user(hellos(200)), answer(hellos(200)), user(hellos(300)), answer('x'), user('and now?')];
    const { recaps } = await ask(more, () => says('Ann said hello a lot.'));
    const text = messageText(recaps[0]?.messages[1] as ChatMessage);
    assert.match(text, /^Summary so far: The user is called Ann\./);
    assert.doesNotMatch(text, /my name is Ann/);
    assert.equal(JSON.parse((await cold.getValue(recapKey('p', 's'))) ?? '{}').text, 'Ann said hello a lot.');
  });

  it('that fails harms nothing', async () => {
    await cold.deleteValue(recapKey('p', 's'));
    const { asked } = await ask(history, () => new ExchangeAnswer({ error: new HermesError('upstream_error', 'away') }));
    assert.equal(asked.length, 1);
    assert.equal(await cold.getValue(recapKey('p', 's')), undefined);
  });
});

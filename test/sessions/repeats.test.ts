import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { ColdStore } from '../../src/contracts/cold-store.ts';
import { HermesError } from '../../src/contracts/errors.ts';
import createSqlJs from '../../src/stores/cold/sqljs.ts';
import { until } from '../services.ts';
import { exchange, storeOptions } from '../stores/fixture.ts';
import { answer, fails, type House, house, type Model, says, sharedContext, streams } from './session-kit.ts';

let cold: ColdStore;
const open: House[] = [];
before(async () => {
  cold = createSqlJs(storeOptions('sqlite::memory:'));
  await cold.open();
});
after(async () => {
  await Promise.all(open.map((each) => each.close()));
  await cold.close();
  await sharedContext.close();
});
/** A process that knows what the cold store knows. */
async function start(store: ColdStore = cold): Promise<House> {
  const made = await house({ cold: store, once: true });
  open.push(made);
  return made;
}
const forever = new Promise<never>(() => undefined);
const first: Model = () => says(answer('the first answer'), { model: 'm' });
const second: Model = () => says(answer('another answer'), { model: 'm' });
const again = { requestId: 'r' };

describe('a repeat of a request whose turn is stored', () => {
  for (const stream of [false, true]) {
    it(`and whose outcome was lost in a crash gets the stored answer, ${stream ? 'streamed' : 'whole'}; the turn is there once`, async () => {
      const session = `crash ${stream}`;
      // It dies in the moment after the turn was stored: whatever else it writes never arrives.
      let stored = false;
      const dying: ColdStore = {
        ...cold,
        appendTurn: async (turn) => {
          const version = await cold.appendTurn(turn);
          stored = true;
          await forever;
          return version;
        },
      };
      const crashed = await start(dying);
      void crashed.say(session, 'pay it back', { ...again, stream, model: first });
      await until(() => stored, 'the turn was not stored');

      const next = await start();
      const told = await next.say(session, 'pay it back', { ...again, stream, model: second });
      assert.equal(told.text, 'the first answer');
      assert.equal(told.seen, undefined, 'the model is not asked again');
      assert.equal(told.exchange.answer?.facts.replayed, true);
      assert.deepEqual(await next.stored(session), ['u:pay it back', 'a:the first answer']);
      // And the session goes on.
      assert.deepEqual((await next.say(session, 'thanks', { model: second })).seen, ['u:pay it back', 'a:the first answer', 'u:thanks']);
    });
  }

  it('in a branch of its session is found there; the branch holds what came before it once', async () => {
    const response = { id: 'resp_1', owner: 'k', record: '{}' };
    const record = { project: 'shop', session: 'forks', at: Date.now(), model: 'm', system: [], messages: [] };
    await cold.appendTurn({ ...record, requestId: '1', baseVersion: 0, messages: exchange('one'), response });
    await cold.appendTurn({ ...record, requestId: '2', baseVersion: 1, messages: exchange('two') });
    const asked = { requestId: 'branch', continues: 'resp_1' };
    for (const model of [first, second]) {
      const told = await (await start()).say('forks', 'instead', { ...asked, model, stream: true });
      assert.equal(told.text, 'the first answer');
      const branch = told.exchange.session?.id ?? '';
      assert.notEqual(branch, 'forks');
      assert.deepEqual(await (await start()).stored(branch), ['u:one', 'a:re: one', 'u:instead', 'a:the first answer']);
    }
    assert.equal((await (await start()).stored('forks')).length, 4);
  });

  it('is found also when other turns came after it, and only for its caller, session and body', async () => {
    const one = await start();
    await one.say('later', 'q', { ...again, model: first });
    await one.say('later', 'next', { model: second });
    const two = await start();
    assert.equal((await two.say('later', 'q', { ...again, model: second })).text, 'the first answer');
    assert.equal((await two.stored('later')).length, 4);
    const three = await start();
    assert.equal((await three.say('later', 'another question', { ...again, model: second })).error?.code, 'idempotency_key_reused');
    assert.equal((await three.say('later', 'q', { ...again, key: 'another key', model: second })).text, 'another answer');
    assert.equal((await three.say('elsewhere', 'q', { ...again, model: second })).text, 'another answer');
  });

  it('is stored in its place when it was broken off, and once when both tries end', async () => {
    const one = await start();
    await one.say('cut', 'before', { model: second });
    await one.say('cut', 'tell me', { ...again, stream: true, leaveAfter: 1, model: () => streams('half an', 5000, ' answer', '.stop') });
    await until(async () => (await one.stored('cut')).at(-1) === 'a:half an', 'what had come was not stored');
    const told = await one.say('cut', 'tell me', { ...again, stream: true, model: () => streams('a whole answer', '.stop') });
    assert.deepEqual(told.seen, ['u:before', 'a:another answer', 'u:tell me']);
    assert.deepEqual(await one.stored('cut'), ['u:before', 'a:another answer', 'u:tell me', 'a:a whole answer']);
    assert.deepEqual((await one.say('cut', 'and now', { model: first })).seen, ['u:before', 'a:another answer', 'u:tell me', 'a:a whole answer', 'u:and now']);
  });

  it('takes the place of an answer of the second choice', async () => {
    const one = await start();
    await one.say('second', 'q', { ...again, model: () => says(answer('second choice'), { degraded: true }) });
    assert.equal((await one.say('second', 'q', { ...again, model: first })).text, 'the first answer');
    assert.deepEqual(await one.stored('second'), ['u:q', 'a:the first answer']);
  });

  it('that failed is a new one', async () => {
    const one = await start();
    await one.say('failed', 'q', { ...again, model: () => fails(new HermesError('upstream_error', 'broke')) });
    assert.equal((await one.say('failed', 'q', { ...again, model: first })).text, 'the first answer');
    assert.deepEqual(await one.stored('failed'), ['u:q', 'a:the first answer']);
  });

  it('on two instances at once that know nothing of each other is stored once', async () => {
    const [one, two] = [await start(), await start()];
    await one.say('race', 'first', { model: second });
    let asked = 0;
    // Both are at it before either answers; the second answers when the first has stored its turn.
    const racing: Model = async () => {
      const place = ++asked;
      await until(async () => (place === 1 ? asked === 2 : (await one.stored('race')).length === 4), 'the other one did not come so far');
      return first({} as never, []);
    };
    const tries = [one.say('race', 'q', { ...again, model: racing })];
    await until(() => asked === 1, 'the first was not asked');
    tries.push(two.say('race', 'q', { ...again, model: racing }));
    await Promise.all(tries);
    assert.deepEqual(await one.stored('race'), ['u:first', 'a:another answer', 'u:q', 'a:the first answer']);
    for (const each of [one, two]) assert.equal((await each.say('race', 'and')).seen?.length, each === one ? 5 : 7);
  });
});

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { type ColdStore, VersionConflict } from '../../src/contracts/cold-store.ts';
import { exchange, stored, texts, turn } from '../stores/fixture.ts';

/** What a cold engine promises of answers that are asked for again by their id. */
export function coldResponses(get: () => ColdStore, fresh: () => string): void {
  const record = JSON.stringify({ hard: 'nul \u0000 surrogate \ud800 订单 \ue000', tools: Array(400).fill('the same again') });

  it('gives a response to the one who was given it, whatever is in it', async () => {
    const session = fresh();
    const response = { id: 'resp_1', owner: 'key:a\u0000', record };
    await get().appendTurn(turn(session, 0, 'before'));
    await get().appendTurn(turn(session, 1, 'one', { response }));
    const found = await get().findResponse('shop', session, response);
    assert.equal(found?.version, 2);
    assert.equal(found.record, record);
    assert.deepEqual(texts(found.messages), ['one', 're: one']);
    for (const other of [
      { ...response, owner: 'key:b' },
      { ...response, id: 'resp_2' },
    ])
      assert.equal(await get().findResponse('shop', session, other), undefined);
    assert.equal(await get().findResponse('other', session, response), undefined);
  });

  it('gives the newest of several under one id, with all of its messages, also those that no longer count', async () => {
    const session = fresh();
    const of = (text: string) => ({ response: { id: 'resp_1', owner: 'a', record: JSON.stringify(text) } });
    await get().appendTurn(turn(session, 0, 'one', of('one')));
    await get().appendTurn(turn(session, 1, 'two', of('two')));
    await get().appendTurn(turn(session, 2, 'instead', { supersedeFrom: 0 }));
    const found = await get().findResponse('shop', session, { id: 'resp_1', owner: 'a' });
    assert.deepEqual([found?.record, texts(found?.messages ?? [])], ['"two"', ['two', 're: two']]);
  });

  it('tells where in its session a response stands, and how the session stood then', async () => {
    const session = fresh();
    const of = (id: string) => ({ response: { id, owner: 'a', record } });
    const at = async (version?: number, limit = 10) => get().readSession('shop', session, limit, version);
    await get().appendTurn(turn(session, 0, 'one', of('resp_1')));
    await get().appendTurn(turn(session, 1, 'two', of('resp_2')));
    assert.deepEqual(await get().turnOfResponse('shop', session, 'resp_1'), { version: 1, newest: false });
    assert.deepEqual(await get().turnOfResponse('shop', session, 'resp_2'), { version: 2, newest: true });
    assert.equal(await get().turnOfResponse('shop', session, 'resp_3'), undefined);
    assert.equal(await get().turnOfResponse('elsewhere', session, 'resp_1'), undefined);
    const [, , second] = (await at())?.messages ?? [];
    await get().appendTurn(turn(session, 2, 'two again', { ...of('resp_3'), supersedeFrom: second?.sequence ?? 0 }));
    await get().appendTurn(turn(session, 3, 'anew', { ...of('resp_4'), supersedeFrom: 0 }));
    const histories = [['one'], ['one', 'two'], ['one', 'two again'], ['anew']].map((asked) => asked.flatMap((text) => [text, `re: ${text}`]));
    for (const [index, history] of histories.entries()) {
      const read = await at(index + 1);
      assert.deepEqual([texts(read?.messages ?? []), read?.total, read?.version], [history, history.length, 4]);
    }
    assert.deepEqual(texts((await at(3, 2))?.messages ?? []), ['two again', 're: two again']);
    assert.equal((await at(3, 2))?.total, 4);
    await get().deleteTurn('shop', session, 3);
    assert.deepEqual(texts((await at(2))?.messages ?? []), ['one', 're: one', 'two', 're: two']);
    await get().deleteTurn('shop', session, 4);
    assert.deepEqual(texts((await at(2))?.messages ?? []), []);
  });

  it('deletes a turn for good, and moves the session on', async () => {
    const session = fresh();
    await get().appendTurn(turn(session, 0, 'one'));
    await get().appendTurn(turn(session, 1, 'two', { response: { id: 'resp_2', owner: 'a', record }, messages: [...exchange('two'), stored('user', 'more')] }));
    await get().appendTurn(turn(session, 2, 'three'));
    assert.equal(await get().deleteTurn('shop', session, 2), true);
    assert.equal(await get().deleteTurn('shop', session, 2), false);
    assert.equal(await get().deleteTurn('shop', session, 9), false);
    assert.equal(await get().deleteTurn('elsewhere', session, 1), false);
    const read = await get().readSession('shop', session, 10);
    assert.deepEqual([texts(read?.messages ?? []), read?.total, read?.version], [['one', 're: one', 'three', 're: three'], 4, 4]);
    assert.equal((await get().listSessions({ project: 'shop', limit: 1000 })).data.find((entry) => entry.session === session)?.tokens, 40);
    assert.equal(await get().findResponse('shop', session, { id: 'resp_2', owner: 'a' }), undefined);
    await assert.rejects(get().appendTurn(turn(session, 3, 'on what was')), VersionConflict);
    assert.equal(await get().appendTurn(turn(session, 4, 'four')), 5);
  });

  it('deletes a session with its last turn', async () => {
    const session = fresh();
    await get().appendTurn(turn(session, 0, 'one'));
    await get().appendTurn(turn(session, 1, 'two', { supersedeFrom: 0 }));
    assert.equal(await get().deleteTurn('shop', session, 2), true);
    assert.equal((await get().readSession('shop', session, 10))?.total, 0);
    assert.equal(await get().deleteTurn('shop', session, 1), true);
    assert.equal(await get().readSession('shop', session, 10), undefined);
    assert.equal(await get().appendTurn(turn(session, 0, 'again')), 1);
  });
}

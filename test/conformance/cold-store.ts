import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ColdStore, type LedgerRow, type StoredMessage, type TraceRecord, VersionConflict } from '../../src/contracts/cold-store.ts';
import { recapKey } from '../../src/contracts/recap-key.ts';
import { parseJson, stringifyJson } from '../../src/wire/json.ts';
import { exchange, stored, texts, turn } from '../stores/fixture.ts';
import { coldResponses } from './cold-responses.ts';
import { AWKWARD } from './hot-store.ts';

const NAMES = [...AWKWARD, 'nul\u0000', '\ud800', '\ud801', '\ufffd', '\ue000d800', "'; DROP TABLE sessions; --", '%', '_'];
let next = 0;
function fresh(): string {
  next += 1;
  return `s-${process.pid}-${next}`;
}

/** What every cold engine promises. `open` gives an opened store on an empty database. */
export function describeColdStore(name: string, open: () => Promise<ColdStore>, options: { skip: string | false } = { skip: false }): void {
  describe(`the cold store ${name}`, options, () => {
    let store: ColdStore;
    before(async () => {
      store = await open();
    });
    after(() => store?.close());
    const get = (): ColdStore => store;
    turns(get);
    histories(get);
    coldResponses(get, fresh);
    lists(get);
    values(get);
    ledger(get);
    traces(get);
    it('says that it can be written', async () => assert.equal(await get().healthy(), true));
  });
}

function turns(get: () => ColdStore): void {
  it('knows no session that never had a turn', async () => {
    assert.equal(await get().readSession('shop', fresh(), 10), undefined);
    assert.equal(await get().sessionVersion('shop', fresh()), 0);
  });
  it('keeps turns in order, whatever their messages hold', async () => {
    const session = fresh();
    const hard = [
      stored('user', 'nul \u0000 surrogate \ud800 quote \' " back \\ u0000 订单 \u{1f600}'),
      stored('assistant', null, { tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{"a":[]}' } }] }),
      { ...stored('assistant', ''), partial: true, degraded: true, tokens: 3 },
    ];
    assert.equal(await get().appendTurn(turn(session, 0, '', { messages: hard, system: [stored('system', 'be kind \u0000')] })), 1);
    assert.equal(await get().appendTurn(turn(session, 1, 'two', { system: [stored('developer', 'new')] })), 2);
    const read = await get().readSession('shop', session, 10);
    assert.ok(read);
    assert.deepEqual(
      read.messages.map(({ sequence: _, ...message }) => message),
      [...hard, ...exchange('two')],
    );
    assert.deepEqual(read.system, [stored('developer', 'new')]);
    assert.equal(read.version, 2);
    assert.equal(read.total, 5);
    const sequences = read.messages.map(({ sequence }) => sequence);
    assert.deepEqual(
      sequences,
      [...sequences].sort((a, b) => a - b),
    );
  });
  it('reads the newest messages, oldest first', async () => {
    const session = fresh();
    for (let i = 0; i < 6; i++) await get().appendTurn(turn(session, i, `n${i}`));
    const read = await get().readSession('shop', session, 3);
    assert.deepEqual(texts(read?.messages ?? []), ['re: n4', 'n5', 're: n5']);
    assert.equal(read?.total, 12);
    assert.deepEqual((await get().readSession('shop', session, 0))?.messages, []);
  });
  it('keeps integers beyond 2^53 to the digit', async () => {
    const session = fresh();
    const message = parseJson('{"role":"user","content":"x","order":9007199254740993}') as StoredMessage['message'];
    await get().appendTurn(turn(session, 0, 'x', { messages: [{ message, tokens: 1 }] }));
    const read = await get().readSession('shop', session, 1);
    assert.equal(stringifyJson(read?.messages[0]?.message), '{"role":"user","content":"x","order":9007199254740993}');
  });
  it('lets exactly one of many turns on one version through', async () => {
    const session = fresh();
    await get().appendTurn(turn(session, 0, 'first'));
    const outcomes = await Promise.allSettled(Array.from({ length: 16 }, (_, i) => get().appendTurn(turn(session, 1, `n${i}`))));
    const failures = outcomes.filter((outcome) => outcome.status === 'rejected');
    assert.equal(failures.length, 15);
    for (const failure of failures) assert.ok(failure.reason instanceof VersionConflict, String(failure.reason));
    const read = await get().readSession('shop', session, 100);
    assert.equal(read?.messages.length, 4);
    assert.equal(read?.version, 2);
  });
  it('lets exactly one of many first turns through, and none on a version that is not there', async () => {
    const session = fresh();
    await assert.rejects(get().appendTurn(turn(session, 3, 'too early')), VersionConflict);
    const outcomes = await Promise.allSettled(Array.from({ length: 8 }, (_, i) => get().appendTurn(turn(session, 0, `n${i}`))));
    assert.equal(outcomes.filter((outcome) => outcome.status === 'fulfilled').length, 1);
    assert.equal((await get().readSession('shop', session, 100))?.total, 2);
  });
}

function histories(get: () => ColdStore): void {
  it('stores the same turn once when it is sent again', async () => {
    const session = fresh();
    const same = turn(session, 0, 'once');
    assert.equal(await get().appendTurn(same), 1);
    assert.equal(await get().appendTurn(same), 1);
    assert.equal((await get().readSession('shop', session, 100))?.total, 2);
  });
  it('finds the turn that a run has stored, with what still counts of it', async () => {
    const session = fresh();
    assert.equal(await get().findTurn('shop', session, 'k.1'), undefined);
    await get().appendTurn(turn(session, 0, 'first', { run: { mark: 'k.1', body: 'b1' }, at: 5 }));
    await get().appendTurn(turn(session, 1, 'second'));
    await get().appendTurn(turn(session, 2, 'third', { run: { mark: 'k.3', body: 'b3' } }));
    const first = await get().findTurn('shop', session, 'k.1');
    assert.ok(first);
    const { messages, ...rest } = first;
    assert.deepEqual(rest, { version: 1, newest: false, at: 5, model: 'gpt-4o', body: 'b1' });
    assert.deepEqual(texts(messages), ['first', 're: first']);
    const third = await get().findTurn('shop', session, 'k.3');
    assert.equal(third?.newest, true);
    await get().appendTurn(turn(session, 3, 'other', { supersedeFrom: third?.messages[1]?.sequence ?? 0 }));
    assert.deepEqual(texts((await get().findTurn('shop', session, 'k.3'))?.messages ?? []), ['third']);
    assert.equal(await get().findTurn('shop', fresh(), 'k.1'), undefined);
    assert.equal(await get().findTurn('lab', session, 'k.1'), undefined);
  });
  it('marks what a differing history replaced, and keeps it', async () => {
    const session = fresh();
    for (let i = 0; i < 3; i++) await get().appendTurn(turn(session, i, `n${i}`));
    const before = await get().readSession('shop', session, 100);
    const from = before?.messages[2]?.sequence;
    assert.ok(from !== undefined);
    await get().appendTurn(turn(session, 3, 'other', { supersedeFrom: from }));
    const read = await get().readSession('shop', session, 100);
    assert.deepEqual(texts(read?.messages ?? []), ['n0', 're: n0', 'other', 're: other']);
    assert.equal(read?.total, 4);
    await get().appendTurn(turn(session, 4, 'last'));
    assert.equal((await get().readSession('shop', session, 100))?.total, 6);
    const { data } = await get().listSessions({ project: 'shop', limit: 500 });
    const summary = data.find((row) => row.session === session);
    assert.equal(summary?.messages, 6);
    assert.equal(summary?.tokens, 60);
  });
  it('takes no two names for one, in projects and in sessions', async () => {
    for (const [i, name] of NAMES.entries()) {
      await get().appendTurn(turn(name, 0, `session ${i}`, { project: 'names' }));
      await get().appendTurn(turn('names', 0, `project ${i}`, { project: name }));
    }
    for (const [i, name] of NAMES.entries()) {
      assert.equal((await get().readSession('names', name, 1))?.messages[0]?.message.content, `re: session ${i}`, JSON.stringify(name));
      assert.equal((await get().readSession(name, 'names', 1))?.messages[0]?.message.content, `re: project ${i}`, JSON.stringify(name));
    }
    const listed = await get().listSessions({ project: 'names', limit: 100 });
    assert.deepEqual(new Set(listed.data.map(({ session }) => session)), new Set(NAMES));
  });
  it('really deletes a session', async () => {
    const [gone, other] = [fresh(), fresh()];
    for (const session of [gone, other]) await get().appendTurn(turn(session, 0, 'x'));
    assert.equal(await get().deleteSession('lab', gone), false);
    assert.equal(await get().deleteSession('shop', gone), true);
    assert.equal(await get().deleteSession('shop', gone), false);
    assert.equal(await get().readSession('shop', gone, 10), undefined);
    assert.equal((await get().readSession('shop', other, 10))?.total, 2);
    await assert.rejects(get().appendTurn(turn(gone, 1, 'a turn that was under way')), VersionConflict);
    assert.equal(await get().appendTurn(turn(gone, 0, 'anew')), 1);
    assert.equal((await get().readSession('shop', gone, 10))?.total, 2);
  });
  it('refuses a turn that cannot be stored without harm to its neighbours', async () => {
    const sessions = Array.from({ length: 8 }, fresh);
    const write = (session: string, i: number): Promise<number> =>
      get().appendTurn(turn(session, 0, 'x', i === 3 ? { messages: [{ ...stored('user', 'x'), tokens: Number.NaN }] } : {}));
    const outcomes = await Promise.allSettled(sessions.map(write));
    assert.deepEqual(
      outcomes.map(({ status }) => status === 'rejected'),
      sessions.map((_, i) => i === 3),
    );
    assert.equal(await get().readSession('shop', sessions[3] ?? '', 10), undefined);
    assert.equal((await get().readSession('shop', sessions[4] ?? '', 10))?.total, 2);
  });
}

function lists(get: () => ColdStore): void {
  it('lists sessions newest first, page by page, each once', async () => {
    const project = fresh();
    for (let i = 0; i < 7; i++) await get().appendTurn(turn(`l${i}`, 0, 'x', { project, at: 1_000_000 + (i >> 1), model: `m${i}` }));
    await get().appendTurn(turn('l0', 1, 'x', { project, at: 2_000_000, model: 'other "model"\n' }));
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await get().listSessions({ project, limit: 3, ...(cursor === undefined ? {} : { cursor }) });
      seen.push(...page.data.map(({ session }) => session));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    assert.deepEqual(seen, ['l0', 'l6', 'l5', 'l4', 'l3', 'l2', 'l1']);
    const { data } = await get().listSessions({ project, limit: 1 });
    assert.deepEqual(data[0], {
      project,
      session: 'l0',
      version: 2,
      messages: 4,
      tokens: 40,
      createdAt: 1_000_000,
      updatedAt: 2_000_000,
      models: ['m0', 'other "model"\n'],
    });
    assert.equal((await get().listSessions({ project, limit: 3, cursor: 'no cursor of ours' })).data.length, 3);
  });
  it('lists the sessions of all projects page by page', async () => {
    const first = await get().listSessions({ limit: 2 });
    const second = await get().listSessions({ limit: 2, ...(first.nextCursor === undefined ? {} : { cursor: first.nextCursor }) });
    const names = [...first.data, ...second.data].map(({ project, session }) => JSON.stringify([project, session]));
    assert.equal(new Set(names).size, 4);
  });
  it('deletes what is older than a moment', async () => {
    const project = fresh();
    for (let i = 0; i < 3; i++) {
      await get().appendTurn(turn(`o${i}`, 0, 'x', { project, at: 10 + i }));
      await get().setValue(recapKey(project, `o${i}`), 'what was said', undefined);
    }
    assert.equal(await get().deleteSessionsBefore(12), 2);
    const recaps = await Promise.all([0, 1, 2].map((i) => get().getValue(recapKey(project, `o${i}`))));
    assert.deepEqual(recaps, [undefined, undefined, 'what was said'], 'summaries go with their sessions');
    assert.deepEqual(
      (await get().listSessions({ project, limit: 9 })).data.map(({ session }) => session),
      ['o2'],
    );
  });
}

function values(get: () => ColdStore): void {
  it('keeps values, awkward ones too, and lists a prefix oldest first', async () => {
    const prefix = `${fresh()}/`;
    for (const [i, name] of [...NAMES].reverse().entries()) await get().setValue(prefix + name, `${i} \u0000 \ud800 ${name}`, undefined);
    await get().setValue(`${prefix.slice(0, -1)}0`, 'a neighbour', undefined);
    for (const [i, name] of [...NAMES].reverse().entries()) assert.equal(await get().getValue(prefix + name), `${i} \u0000 \ud800 ${name}`);
    const listed = await get().listValues(prefix, 100);
    assert.deepEqual(
      listed.map(({ key }) => key),
      [...NAMES].reverse().map((name) => prefix + name),
    );
    assert.equal((await get().listValues(prefix, 2)).length, 2);
    await get().deleteValue(prefix + NAMES[0]);
    assert.equal(await get().getValue(prefix + NAMES[0]), undefined);
    assert.equal(await get().getValue(`${prefix}%`), await get().getValue(`${prefix}%`));
  });
  it('sets a value once when it must be absent, also for twenty at a time, and again after its time', async () => {
    const key = fresh();
    const won = await Promise.all(Array.from({ length: 20 }, (_, i) => get().setValue(key, String(i), Date.now() + 300, true)));
    assert.equal(won.filter(Boolean).length, 1);
    assert.equal(await get().getValue(key), String(won.indexOf(true)));
    await sleep(320);
    assert.equal(await get().getValue(key), undefined);
    assert.deepEqual(await get().listValues(key, 10), []);
    assert.equal(await get().setValue(key, 'again', undefined, true), true);
    assert.equal(await get().setValue(key, 'no', undefined, true), false);
    assert.equal(await get().setValue(key, 'yes', undefined), true);
    assert.equal(await get().getValue(key), 'yes');
  });
}

const ROW: LedgerRow = {
  ...{ hour: '2026-11-30T17:00Z', project: 'shop', service: 'support', user: 'u1', session: 's1', key: 'k1', route: 'r1', model: 'm1', upstream: 'up1' },
  ...{
    shadow: false,
    calls: 1,
    failed_calls: 0,
    estimated_calls: 0,
    input_tokens: 10,
    cached_tokens: 1,
    output_tokens: 5,
    reasoning_tokens: 2,
    saved_tokens: 3,
  },
  cost_nano_usd: 9_007_199_254_740_993n,
};
function ledger(get: () => ColdStore): void {
  const window = { from: '2026-11-30T17:00Z', to: '2026-11-30T18:00Z' };
  it('adds to the hourly sums, once a batch, beyond what a float can hold', async () => {
    await get().addToLedger('b1', [ROW, ROW, { ...ROW, user: 'u"2\u0000' }]);
    await get().addToLedger('b1', [ROW]);
    await get().addToLedger('b2', [ROW, { ...ROW, hour: '2026-11-30T18:00Z' }, { ...ROW, shadow: true }]);
    const byUser = await get().readLedger({ ...window, by: ['user', 'service'], shadow: 'without' });
    assert.deepEqual(
      byUser.map(({ user, service, calls, saved_tokens, cost_nano_usd }) => [user, service, calls, saved_tokens, cost_nano_usd]),
      [
        ['u"2\u0000', 'support', 1, 3, ROW.cost_nano_usd],
        ['u1', 'support', 3, 9, 3n * ROW.cost_nano_usd],
      ],
    );
    assert.deepEqual(byUser[0], { ...ROW, hour: '', project: '', user: 'u"2\u0000', session: '', key: '', route: '', model: '', upstream: '' });
    assert.equal((await get().readLedger({ ...window, by: [], shadow: 'with' }))[0]?.calls, 5);
    assert.equal((await get().readLedger({ ...window, by: ['hour'], shadow: 'only' }))[0]?.calls, 1);
    assert.deepEqual(await get().readLedger({ from: '2025', to: '2026', by: [], shadow: 'with' }), []);
    await assert.rejects(get().readLedger({ ...window, by: ['calls; DROP TABLE ledger'], shadow: 'with' }), /no column/);
  });
  it('reads the books of one session, of one project', async () => {
    const year = { from: '2029', to: '2030' };
    const row = { ...ROW, hour: '2029-01-01T05:00Z' };
    await get().addToLedger('of-one', [row, { ...row, session: 's\u00002' }, { ...row, project: 'other' }, { ...row, session: '' }]);
    const calls = async (more: object): Promise<number | undefined> => (await get().readLedger({ ...year, by: [], shadow: 'with', ...more }))[0]?.calls;
    assert.equal(await calls({}), 4);
    assert.equal(await calls({ session: 's1' }), 2);
    assert.equal(await calls({ session: 's1', project: 'shop' }), 1);
    assert.equal(await calls({ session: 's\u00002', project: 'shop' }), 1);
    assert.equal(await calls({ session: '' }), 1);
    assert.equal(await calls({ project: 'shop' }), 3);
    assert.equal(await calls({ project: 'nobody' }), undefined);
    const byModel = await get().readLedger({ ...year, by: ['model'], shadow: 'without', project: 'shop', session: 's1' });
    assert.deepEqual(
      byModel.map(({ model, cost_nano_usd }) => [model, cost_nano_usd]),
      [['m1', ROW.cost_nano_usd]],
    );
  });
  it('loses only the row that cannot be stored, among many, too', async () => {
    const year = { from: '2030', to: '2031' };
    const many = Array.from({ length: 600 }, (_, i) => ({ ...ROW, hour: '2030-01-01T05:00Z', user: `u${i}`, calls: i === 300 ? Number.NaN : 1 }));
    await get().addToLedger('many', many);
    assert.equal((await get().readLedger({ ...year, by: [], shadow: 'with' }))[0]?.calls, 599);
  });
  it('loses only the row that cannot be stored', async () => {
    const day = { from: '2027-01-01T00:00Z', to: '2027-01-02T00:00Z' };
    const row = { ...ROW, hour: '2027-01-01T05:00Z' };
    await get().addToLedger('b3', [row, { ...row, user: 'bad', calls: Number.NaN }, { ...row, user: 'good' }]);
    assert.equal((await get().readLedger({ ...day, by: [], shadow: 'with' }))[0]?.calls, 2);
  });
  it('sums batches that come at once', async () => {
    const day = { from: '2028-01-01T00:00Z', to: '2028-01-02T00:00Z' };
    const rows = Array.from({ length: 5 }, (_, i) => ({ ...ROW, hour: '2028-01-01T05:00Z', user: `u${i}` }));
    await Promise.all(Array.from({ length: 12 }, (_, i) => get().addToLedger(`c${i}`, i % 2 ? rows : [...rows].reverse())));
    assert.equal((await get().readLedger({ ...day, by: [], shadow: 'with' }))[0]?.calls, 60);
  });
}

function trace(id: string, extra: Partial<TraceRecord> = {}): TraceRecord {
  const ids = { id, traceId: 'f'.repeat(32), requestId: `r-${id}`, startedAt: 1000, durationMs: 1.5, status: 200, route: 'default', model: 'm', service: 's' };
  return { ...ids, session: undefined, spans: [], calls: [], facts: { note: 'nul \u0000' }, ...extra };
}
function traces(get: () => ColdStore): void {
  it('keeps traces, finds them by what they are asked for, newest first, page by page', async () => {
    const written = Array.from({ length: 6 }, (_, i) =>
      trace(`t${i}`, {
        startedAt: 1000 + (i >> 1),
        route: i % 2 ? 'odd' : 'even',
        status: i === 5 ? 502 : 200,
        ...(i === 2 ? { session: 'a\u0000' } : {}),
        ...(i === 4 ? { traceId: 'e'.repeat(32) } : {}),
      }),
    );
    await get().writeTraces(written);
    await get().writeTraces([]);
    assert.deepEqual(await get().readTrace('t1'), written[1]);
    assert.equal(await get().readTrace('none'), undefined);
    const ids = async (query: Parameters<ColdStore['listTraces']>[0]): Promise<string[]> => (await get().listTraces(query)).data.map(({ id }) => id);
    assert.deepEqual(await ids({ limit: 9 }), ['t5', 't4', 't3', 't2', 't1', 't0']);
    const page = await get().listTraces({ limit: 4 });
    assert.deepEqual(await ids({ limit: 4, cursor: page.nextCursor ?? '' }), ['t1', 't0']);
    assert.deepEqual(await ids({ limit: 9, route: 'odd' }), ['t5', 't3', 't1']);
    assert.deepEqual(await ids({ limit: 9, status: 502 }), ['t5']);
    assert.deepEqual(await ids({ limit: 9, session: 'a\u0000' }), ['t2']);
    assert.deepEqual(await ids({ limit: 9, traceId: 'e'.repeat(32) }), ['t4']);
    assert.deepEqual(await ids({ limit: 2, traceId: 'f'.repeat(32) }), ['t5', 't3']);
    assert.deepEqual(await ids({ limit: 9, requestId: 'r-t3', route: 'odd', from: 1001, to: 1002 }), ['t3']);
    assert.deepEqual(await ids({ limit: 9, from: 1001, to: 1002 }), ['t3', 't2']);
    assert.equal(await get().deleteTracesBefore(1001), 2);
    assert.deepEqual(await ids({ limit: 9 }), ['t5', 't4', 't3', 't2']);
  });
}

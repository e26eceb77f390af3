import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { ColdStore } from '../../src/contracts/cold-store.ts';
import { HermesError } from '../../src/contracts/errors.ts';
import { StoreUnavailable } from '../../src/contracts/hot-store.ts';
import {
  type Asked,
  call,
  type Instance,
  type InstanceOptions,
  instance,
  type Model,
  openCold,
  results,
  sleep,
  type Toolbox,
  toolbox,
  toolOf,
  until,
} from './tools-kit.ts';

let box: Toolbox;
let cold: ColdStore;
const open: Instance[] = [];
/** How long a refund of this order takes. */
const slow = new Map<string, number>();
const rule = ['order.query', 'refund', 'retried', 'deduped', 'broken', 'refused', 'gone'];
const refunds = (id: string, tool = 'refund') => box.ran(tool).filter(({ body }) => body.params.order_id === id);
const refund = (id: string, amount = 5) => [call('refund', { order_id: id, amount })];
const once =
  (first: ReturnType<typeof refund>): Model =>
  (_, round) =>
    round === 0 ? first : 'done';
const forever = new Promise<never>(() => undefined);

before(async () => {
  cold = await openCold();
  const paid = async ({ body }: Toolbox['hits'][number]) => {
    await sleep(slow.get(String(body.params.order_id)) ?? 0);
    return { refunded: body.params.order_id, id: body.request_id };
  };
  box = await toolbox({
    'order.query': () => ({ state: 'shipped' }),
    refund: paid,
    deduped: paid,
    retried: (hit, response, nth) => (nth % 2 === 1 ? void response.destroy() : paid(hit)),
    broken: (_, response) => void response.writeHead(503).end(),
    refused: (_, response, nth) => (nth === 1 ? void response.writeHead(409).end('not yet') : { refunded: true }),
  });
});
after(async () => {
  await Promise.all(open.map(({ hot }) => hot.close()));
  await cold.close();
  await box.close();
});

/** An instance as after a crash of the others: it knows what the cold store knows. */
async function start(model: Model, options: Partial<InstanceOptions> = {}): Promise<Instance> {
  const changing = { side_effects: true, timeout_ms: 1000 };
  const tools = [
    toolOf(box, 'order.query'),
    ...['refund', 'broken'].map((id) => toolOf(box, id, changing)),
    toolOf(box, 'refused', { ...changing, dedupe: { by: ['params.order_id'], window_seconds: 600 } }),
    toolOf(box, 'retried', { ...changing, retries: 1 }),
    toolOf(box, 'deduped', { ...changing, dedupe: { by: ['user', 'params.order_id'], window_seconds: 600 } }),
    toolOf(box, 'gone', { ...changing, endpoint: 'http://127.0.0.1:9/gone', dedupe: { by: ['params.order_id'], window_seconds: 600 } }),
  ];
  const made = await instance({ model, cold, tools, ...options });
  open.push(made);
  return made;
}
const id = (requestId: string, more: Asked = {}): Asked => ({ rule, ask: { requestId }, ...more });

describe('a run is a log', () => {
  test('after a crash between the refund and the answer, the retry goes on without asking for the refund again', async () => {
    for (const stream of [false, true]) {
      const name = `crash ${stream}`;
      const message = { message: { role: 'assistant' as const, content: 'At once. ', tool_calls: refund(name) } };
      const crashed = await start((_, round) => (round === 0 ? message : forever));
      void crashed.tell(name, id(name, { stream }));
      await until(() => crashed.asked.length === 2);
      const restarted = await start(once(refund(name)));
      const told = await restarted.tell(name, id(name, { stream }));
      assert.deepEqual([told.text, refunds(name).length, restarted.asked.length], [stream ? 'At once. done' : 'done', 1, 1]);
      assert.match(results(restarted.asked[0])[0] ?? '', /refunded/);
      assert.deepEqual(
        told.facts.toolCalls?.map(({ status }) => status),
        ['replayed'],
      );
      assert.equal((await restarted.tell(name, id(name))).facts.replayed, true);
    }
  });

  test('after a crash during the refund its outcome is unknown: it is not called again, and the model is told', async () => {
    slow.set('during', 2000);
    const crashed = await start(once(refund('during')));
    void crashed.tell('during', id('during'));
    await until(() => refunds('during').length === 1);
    const restarted = await start(once(refund('during')));
    const told = await restarted.tell('during', id('during'));
    assert.deepEqual([told.text, refunds('during').length, restarted.asked.length], ['done', 1, 1]);
    assert.match(results(restarted.asked[0])[0] ?? '', /unknown/);
  });

  test("a tool's own retries repeat what broke off, under the same id", async () => {
    const here = await start(once([call('retried', { order_id: 'again' })]));
    const told = await here.tell('retries', { rule });
    const hits = refunds('again', 'retried');
    assert.deepEqual([told.facts.toolCalls?.[0]?.status, hits.length, new Set(hits.map(({ body }) => body.request_id)).size], ['ok', 2, 1]);
  });

  test('a request that fails after the refund comes again: one refund, and the same ids', async () => {
    let down = true;
    const here = await start((_, round) => (round === 0 ? refund('fails') : down ? new HermesError('upstream_error', 'down') : 'done'));
    assert.equal((await here.tell('fails', id('fails'))).error?.code, 'upstream_error');
    down = false;
    const told = await here.tell('fails', id('fails'));
    assert.deepEqual([told.text, refunds('fails').length, told.facts.toolCalls?.[0]?.request_id], ['done', 1, refunds('fails')[0]?.body.request_id]);
  });

  test('another body under the id of a crashed run is refused', async () => {
    const crashed = await start((_, round) => (round === 0 ? refund('reused') : forever));
    void crashed.tell('reused', id('reused'));
    await until(() => crashed.asked.length === 2);
    const restarted = await start(once(refund('reused')));
    assert.equal((await restarted.tell('something else', id('reused'))).error?.code, 'idempotency_key_reused');
  });

  test('two instances that do not know of each other run one refund for one request id', async () => {
    slow.set('two', 150);
    const [one, two] = [await start(once(refund('two'))), await start(once(refund('two')))];
    await Promise.all([one.tell('two', id('two')), two.tell('two', id('two'))]);
    assert.equal(refunds('two').length, 1);
  });

  test("two callers' requests of the same id are two actions", async () => {
    const here = await start(once(refund('callers')));
    for (const key of ['a', 'b']) await here.tell('callers', id('callers', { key }));
    assert.equal(new Set(refunds('callers').map(({ body }) => body.request_id)).size, 2);
  });

  test('without the store that keeps it no refund begins, while tools that only read go on', async () => {
    const away = () => Promise.reject(new StoreUnavailable('sqljs'));
    const broken: ColdStore = { ...cold, getValue: away, setValue: away, listValues: away };
    const here = await start((_, round) => (round === 0 ? [...refund('away'), call('order.query', { order_id: 'away' })] : 'done'), { cold: broken });
    const told = await here.tell('away', id('away'));
    assert.deepEqual([told.text, refunds('away').length, told.facts.toolCalls?.map(({ status }) => status)], ['done', 0, ['error', 'ok']]);
  });
});

describe('when the client hangs up', () => {
  test('during the refund, the refund and the whole request are completed and stored for the retry', async () => {
    slow.set('hang', 120);
    const here = await start(once(refund('hang')));
    const first = await here.tell('hang', id('hang', { leave: until(() => refunds('hang').length === 1) }));
    assert.equal(first.error?.code, 'client_closed');
    await until(() => here.asked.length === 2);
    const told = await here.tell('hang', id('hang'));
    assert.deepEqual([told.text, refunds('hang').length, refunds('hang')[0]?.aborted, here.asked.length], ['done', 1, false, 2]);
  });

  test('during the refund of a stream nobody reads, it is completed as well, also without an id for the SDK that repeats', async () => {
    slow.set('stream', 120);
    const here = await start(once(refund('stream')));
    const sdk = (count: number): Asked => ({ rule, stream: true, headers: { 'x-stainless-retry-count': String(count) } });
    await here.tell('stream', { ...sdk(0), leave: until(() => refunds('stream').length === 1) });
    await sleep(200);
    const told = await here.tell('stream', sdk(1));
    assert.deepEqual([told.text, told.facts.replayed, refunds('stream').length, here.asked.length], ['done', true, 1, 2]);
  });

  test('before the refund, it begins only if a repeat joins in time', async () => {
    const think: Model = async (_, round) => {
      if (round === 0) await sleep(80);
      return round === 0 ? refund('joins') : 'done';
    };
    const here = await start(think);
    await here.tell('joins', id('joins', { leave: sleep(20) }));
    await sleep(150);
    assert.equal(refunds('joins').length, 0);
    const told = await here.tell('joins', id('joins'));
    assert.deepEqual([told.text, refunds('joins').length, here.asked.length], ['done', 1, 2]);
  });

  test('and nobody comes back, the refund never begins; a later retry runs it once, without asking the model anew', async () => {
    const here = await start(
      async (_, round) => {
        if (round === 0) await sleep(40);
        return round === 0 ? refund('never') : 'done';
      },
      { file: { idempotency: { rejoin_seconds: 1 } } },
    );
    await here.tell('never', id('never', { leave: sleep(10) }));
    await sleep(1200);
    assert.deepEqual([refunds('never').length, here.asked.length], [0, 1]);
    const told = await here.tell('never', id('never'));
    assert.deepEqual([told.text, refunds('never').length, here.asked.length], ['done', 1, 2]);
  });

  test('with only readers on offer the model is stopped at once', async () => {
    let cancelled = false;
    const here = await start(
      (exchange) =>
        new Promise(() =>
          exchange.onCancel(() => {
            cancelled = true;
          }),
        ),
    );
    await here.tell('readers', { rule: ['order.query'], leave: sleep(20) });
    // Where a tool might have side effects it would go on for ten seconds.
    await until(() => cancelled, 5000);
  });
});

describe('what a tool with side effects said', () => {
  test('is final for its id, whatever it was; a time-out leaves the outcome unknown', async () => {
    slow.set('late', 1500);
    const cases: [string, string, string, RegExp][] = [
      ['broken', 'x', 'error', /503/],
      ['refund', 'late', 'timeout', /unknown/],
    ];
    for (const [tool, order, status, word] of cases) {
      const here = await start((_, round) => (round === 0 ? [call(tool, { order_id: order })] : new HermesError('upstream_error', 'down')));
      for (const nth of [1, 2]) {
        const told = await here.tell(tool, id(`final ${tool}`));
        assert.deepEqual([told.facts.toolCalls?.[0]?.status, refunds(order, tool).length], [status, 1], `${tool} ${nth}`);
      }
      assert.match(results(here.asked.at(-1))[0] ?? '', word);
    }
  });
});

describe('dedupe', () => {
  const deduped = (order: string) => once([call('deduped', { order_id: order })]);
  test('makes one action of what unrelated requests ask for within the window, at once or later, in one process or two', async () => {
    slow.set('d1', 100);
    const [one, two] = [await start(deduped('d1')), await start(deduped('d1'))];
    const ask = { user: 'u' };
    const told = await Promise.all([one.tell('a', { rule, ask }), one.tell('b', { rule, ask, key: 'other' }), two.tell('c', { rule, ask })]);
    told.push(await two.tell('d', { rule, ask }));
    assert.deepEqual([refunds('d1', 'deduped').length, told.map(({ text }) => text)], [1, Array(4).fill('done')]);
    assert.deepEqual(
      told
        .flatMap(({ facts }) => facts.toolCalls ?? [])
        .map(({ status }) => status)
        .sort(),
      ['ok', 'replayed', 'replayed', 'replayed'],
    );
    assert.equal(new Set(told.flatMap(({ facts }) => facts.toolCalls ?? []).map(({ request_id }) => request_id)).size, 1);
    assert.ok([...one.asked, ...two.asked].flatMap(results).every((text) => text.includes('refunded')));
  });

  test('goes by its fields alone', async () => {
    const here = await start(deduped('d2'));
    for (const user of ['u1', 'u2', 'u1']) await here.tell('x', { rule, ask: { user } });
    assert.equal(refunds('d2', 'deduped').length, 2);
  });

  test('lets an action that certainly did not happen be asked for again', async () => {
    const here = await start((exchange, round) =>
      round === 0 ? [call(exchange.request.messages[0]?.content === 'gone' ? 'gone' : 'refused', { order_id: 'd3' })] : 'done',
    );
    const told = async (text: string): Promise<string> => {
      await here.tell(text, { rule });
      return results(here.asked.at(-1))[0] ?? '';
    };
    for (const text of ['gone', 'gone']) assert.match(await told(text), /reached/);
    assert.match(await told('refused'), /409.*not yet/);
    assert.match(await told('refused'), /refunded/);
    assert.match(await told('refused'), /refunded/);
    assert.equal(box.ran('refused').length, 2);
  });
});

import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, beforeEach, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseRetryAfter } from '../../src/wire/retry-after.ts';
import { KEY, type RunningApp, saidIn, startApp, user } from '../app-kit.ts';
import { type Behaviour, createFakeUpstream, type FakeUpstream } from '../fake-upstream.ts';
import { startStopwatch } from '../time-kit.ts';
import { toldIn } from './field-kit.ts';

const COOLDOWN_MS = 200;
const SILENCE_MS = 800;
const FIRST_TOKEN_MS = 500;
let fake: FakeUpstream;
let app: RunningApp;
const good: Behaviour = (reply) => reply.completion({ content: 'good' });

before(async () => {
  fake = await createFakeUpstream();
  fake.on('good', good);
  const at = (id: string) => ({ id, provider: 'openai', model_name: id, api_base: fake.url, api_key_env: 'UP' });
  const pool = (id: string, targets: string[], more: object = {}) => ({
    id,
    timeout_ms: SILENCE_MS,
    first_token_timeout_ms: FIRST_TOKEN_MS,
    failover: {
      strategy: 'priority',
      max_attempts: 2,
      failure_threshold: 1000,
      cooldown_ms: COOLDOWN_MS,
      upstreams: targets.map((target) => ({ target })),
      ...more,
    },
  });
  app = await startApp(
    {
      models: [
        ...['bad', 'good', 'sick'].map(at),
        pool('pair', ['bad', 'good']),
        pool('lone', ['bad'], { max_attempts: 1 }),
        { ...pool('patient', ['bad', 'good']), timeout_ms: 30_000 },
        { ...pool('lone-patient', ['bad'], { max_attempts: 1 }), timeout_ms: 30_000, first_token_timeout_ms: 30_000 },
        pool('probed', ['sick'], { failure_threshold: 1, max_attempts: 1 }),
      ],
    },
    { env: { UP: 'sk-up' } },
  );
});
after(async () => {
  await app.stop();
  await fake.close();
});
beforeEach(() => {
  fake.calls.length = 0;
});

const ask = (model: string, more: object = {}) => app.chat({ model, messages: user('hi'), ...more });
async function failuresOf(id: string): Promise<number | undefined> {
  const { data } = (await app.fetch('/admin/upstreams')).json as unknown as { data: { id: string; consecutive_failures: number }[] };
  return data.find((upstream) => upstream.id === id)?.consecutive_failures;
}
/** A client that can hang up at any moment. */
function caller(body: object): { text: () => string; hangUp: () => void; gone: Promise<void> } {
  let text = '';
  const request = http.request(`${app.base}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
  });
  const gone = new Promise<void>((resolve) => void request.on('close', resolve));
  request.on('error', () => undefined);
  request.on('response', (response) => {
    response.on('data', (piece: Buffer) => {
      text += piece.toString();
    });
    response.on('error', () => undefined);
  });
  request.end(JSON.stringify(body));
  return { text: () => text, hangUp: () => request.destroy(), gone };
}

describe('field report 15: 200 with no answer in it', () => {
  const nothings: Record<string, Behaviour> = {
    'an HTML page': (reply) => reply.response.writeHead(200, { 'content-type': 'text/html' }).end('<html>please wait</html>') && undefined,
    'an error object': (reply) => reply.json({ error: { message: 'broke', type: 'server_error' } }),
    'half a JSON': (reply) => reply.json('{"id":"x","choices":[{"index":0,"message":{"role":"assi'),
    'blank lines, then a close': async (reply) => {
      reply.response.writeHead(200, { 'content-type': 'application/json' });
      reply.response.write('\n\n\n');
      await reply.cut();
    },
    'content: null': (reply, call) => (call.body.stream ? reply.stream([{ role: 'assistant', content: null }, 'stop']) : reply.completion({ content: null })),
  };
  for (const [what, behaviour] of Object.entries(nothings))
    test(`${what}: another upstream answers; with none left it is 502`, async () => {
      fake.on('bad', behaviour);
      for (const stream of [false, true]) assert.equal(saidIn(await ask('pair', { stream })), 'good', `stream ${stream}`);
      const reply = await ask('lone');
      assert.equal(reply.status, 502);
      assert.equal(typeof reply.json.error?.message, 'string');
    });

  test('an empty content that was cut by its length is an answer', async () => {
    fake.on('bad', (reply) => reply.completion({ content: '' }, { finish: 'length' }));
    for (const stream of [false, true]) assert.equal((await ask('pair', { stream })).status, 200);
    assert.equal(fake.callsOf('good').length, 0);
  });
});

describe('field report 16: Retry-After in every form', () => {
  const now = Date.parse('2026-11-30T12:00:00Z');
  for (const [headers, ms] of [
    [{ 'retry-after': '0' }, 0],
    [{ 'retry-after': '1.5' }, 1500],
    [{ 'retry-after': '-3' }, undefined],
    [{ 'retry-after': '120' }, 120_000],
    [{ 'retry-after': 'Mon, 30 Nov 2026 12:00:10 GMT' }, 10_000],
    [{ 'retry-after': 'Mon, 30 Nov 2026 11:00:00 GMT' }, 0],
    [{ 'retry-after': 'soon' }, undefined],
    [{ 'retry-after': '' }, undefined],
    [{ 'retry-after-ms': '250' }, 250],
  ] as const)
    test(`${JSON.stringify(headers)} is ${ms} ms`, () => assert.equal(parseRetryAfter(headers, now), ms));

  test('whatever it says, a free upstream is asked at once instead of sleeping', async () => {
    for (const value of ['0', '4.5', '-3', '120', 'soon', '', '999999', new Date(Date.now() + 3_600_000).toUTCString()]) {
      await app.post('/admin/upstreams/bad/reset', {});
      fake.on('bad', (reply) => reply.error(429, 'slow down', { headers: { 'retry-after': value } }));
      const watch = startStopwatch();
      assert.equal(saidIn(await ask('pair')), 'good', value);
      assert.ok(watch.stop() < 2000, `${value}: ${watch.ms()} ms`);
    }
    await app.post('/admin/upstreams/bad/reset', {});
  });
});

test('field report 17: a probe that ends in 401 gives its slot back, and the healed upstream is used again', async () => {
  let ill: Behaviour = (reply) => reply.error(500);
  fake.on('sick', (reply, call) => ill(reply, call));
  await ask('probed');
  assert.equal((await ask('probed')).status, 503);
  ill = (reply) => reply.error(401, 'bad key', { type: 'invalid_request_error' });
  await sleep(COOLDOWN_MS + 50);
  assert.equal((await ask('probed')).json.error?.code, 'upstream_auth_failed');
  ill = (reply) => reply.completion({ content: 'healed' });
  for (const end = Date.now() + 3000; saidIn(await ask('probed')) !== 'healed'; await sleep(20)) assert.ok(Date.now() < end, 'its slot is lost');
});

test('field report 18: users pressing Stop never count, never retry, never fail over; our own time-out counts', async () => {
  await app.post('/admin/upstreams/bad/reset', {});
  fake.on('bad', (reply) => reply.stall());
  for (let i = 0; i < 3; i++) {
    const client = caller({ model: 'pair', stream: i > 0, messages: user('stop before the first byte') });
    await fake.until(() => fake.calls.length === i + 1);
    client.hangUp();
    await fake.until(() => fake.calls.every(({ aborted }) => aborted));
  }
  fake.on('bad', (reply) => reply.stream([{ role: 'assistant', content: 'one ' }], { done: false, end: false }));
  const client = caller({ model: 'pair', stream: true, messages: user('stop after it') });
  await fake.until(() => client.text().includes('one '));
  client.hangUp();
  await fake.until(() => fake.calls.every(({ aborted }) => aborted));
  assert.equal(fake.callsOf('good').length, 0);
  assert.equal(await failuresOf('bad'), 0);
  const metrics = (await app.fetch('/metrics')).text;
  assert.match(metrics, /hermes_upstream_attempts_total\{upstream="bad",outcome="aborted"\} 4/);
  fake.on('bad', (reply) => reply.stall());
  assert.equal(saidIn(await ask('pair')), 'good');
  assert.equal(await failuresOf('bad'), 1);
});

describe('field report 19: a client that leaves stops everything, and what was used is booked', () => {
  test('while the first token is awaited, in a call that is no stream, and in a stream', async () => {
    fake.on('bad', (reply) => reply.stall());
    for (const stream of [false, true]) {
      const client = caller({ model: 'lone-patient', stream, messages: user('left') });
      await fake.until(() => fake.calls.length > 0 && fake.calls.at(-1)?.closedAt === undefined);
      client.hangUp();
      await fake.until(() => fake.calls.at(-1)?.aborted === true);
    }
  });

  test('during a backoff: nothing is asked afterwards', async () => {
    fake.on('bad', (reply) => reply.error(503, 'busy', { headers: { 'retry-after-ms': '1000' } }));
    await app.post('/admin/upstreams/good/drain', {});
    const client = caller({ model: 'pair', messages: user('left in a backoff') });
    await fake.until(() => fake.calls.length === 1);
    await sleep(30);
    client.hangUp();
    await sleep(1300);
    assert.equal(fake.calls.length, 1);
    await app.post('/admin/upstreams/good/reset', {});
  });

  test('while queued on a session: its place is free again, and the next has its turn', async () => {
    let release = (): void => undefined;
    fake.on('good', async (reply) => {
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      return reply.completion({ content: 'good' });
    });
    const turn = (text: string) => ({ model: 'good', session_id: 'queue', messages: user(text) });
    const first = app.chat(turn('first'));
    await fake.until(() => fake.calls.length === 1);
    const queued = caller(turn('left'));
    await sleep(50);
    queued.hangUp();
    await queued.gone;
    fake.on('good', good);
    release();
    assert.equal((await first).status, 200);
    assert.equal((await app.chat(turn('next'))).status, 200);
    assert.deepEqual(
      fake.calls.map(({ body }) => body.messages.at(-1)?.content),
      ['first', 'next'],
    );
  });

  test('after some of the answer: it is booked as an estimate', async () => {
    fake.on('bad', (reply) => reply.stream([{ role: 'assistant', content: 'some words of an answer ' }], { done: false, end: false }));
    const client = caller({ model: 'lone', stream: true, messages: user('booked'), user: 'leaver' });
    await fake.until(() => client.text().includes('some words'));
    client.hangUp();
    await fake.until(() => fake.calls.at(-1)?.aborted === true);
    const booked = async (): Promise<Record<string, number> | undefined> =>
      ((await app.fetch('/admin/costs?by=user')).json as { rows?: Record<string, number>[] }).rows?.find((row) => String(row.user) === 'leaver');
    for (const end = Date.now() + 4000; !(await booked()); await sleep(50)) assert.ok(Date.now() < end, 'not booked');
    const row = await booked();
    assert.equal(row?.estimated_calls, 1);
    assert.ok((row?.output_tokens ?? 0) > 0);
  });
});

test('field report 20: a healthy stream that lasts longer than every limit is not cut', async () => {
  // 800 ms between chunks are allowed, 500 for the first: this one takes over a second.
  fake.on('bad', (reply) =>
    reply.stream([{ role: 'assistant', content: '' }, ...Array.from({ length: 8 }, (_, i) => ({ content: `${i} ` })), 'stop'], { delayMs: 150 }),
  );
  const told = toldIn(await ask('lone', { stream: true }));
  assert.equal(told.text, '0 1 2 3 4 5 6 7 ');
  assert.deepEqual([told.errors, told.done], [[], true]);
  const late = toldIn(await ask('lone', { stream: true, timeout: 0.6 }));
  assert.equal(late.done, false);
  assert.equal((late.errors[0] as { code?: string }).code, 'deadline_exceeded');
});

describe('field report 21: 200 and nothing', () => {
  for (const [what, behaviour] of Object.entries<Behaviour>({
    'headers, then silence': (reply) => void reply.open(),
    'an empty body': (reply) => reply.open().end(),
  }))
    test(`${what}: the first-token limit moves on`, async () => {
      fake.on('bad', behaviour);
      // The whole may take half a minute.
      const watch = startStopwatch();
      assert.equal(saidIn(await ask('patient', { stream: true })), 'good');
      assert.ok(watch.stop() < 15_000, `${watch.ms()} ms`);
    });
});

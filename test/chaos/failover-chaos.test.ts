import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { model, type Told } from '../upstream/failover-kit.ts';
import { type SocketHouse, socketHouse } from '../upstream/socket-house.ts';
import { seeded, sometimesIll } from './ills.ts';

/** The share of calls that go wrong. */
const ILL = 0.3;
const REQUESTS = 400;
const AT_ONCE = 16;
/** How often a client asks, and how long it waits in between: longer than a cool-down, as the SDKs do. */
const CLIENT_TRIES = 4;
const CLIENT_WAIT_MS = 70;

async function chaos(context: TestContext, commit: 'content' | 'complete', seed: number): Promise<{ house: SocketHouse; first: Told[]; last: Told[] }> {
  const random = seeded(seed);
  const house = await socketHouse((at) => [
    model(
      'm',
      ['a', 'b', 'c'].map((id) => at(id, { timeoutMs: 500, firstTokenTimeoutMs: 500 })),
      { max_attempts: 6, failure_threshold: 10, cooldown_ms: 50, commit },
    ),
  ]);
  context.after(() => house.close());
  for (const id of ['a', 'b', 'c'])
    house.fake.on(
      id,
      sometimesIll(ILL, random, (reply) => reply.completion({ content: 'one whole answer' })),
    );
  const [first, last]: [Told[], Told[]] = [[], []];
  let next = 0;
  const client = async (): Promise<void> => {
    for (let number = next++; number < REQUESTS; number = next++) {
      let told = await house.ask({ stream: number % 2 === 0 });
      first.push(told);
      for (let tries = 1; told.error && tries < CLIENT_TRIES; tries++) {
        await new Promise((resolve) => setTimeout(resolve, CLIENT_WAIT_MS));
        told = await house.ask({ stream: number % 2 === 0 });
      }
      last.push(told);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, client));
  return { house, first, last };
}

async function nothingIsLeftBehind(house: SocketHouse): Promise<void> {
  await house.fake.until(() => house.fake.calls.every(({ closedAt }) => closedAt !== undefined));
  // Every slot is free again: with all of them well each serves once more.
  for (const id of ['a', 'b', 'c']) house.fake.on(id, (reply) => reply.completion({ content: 'well' }));
  await new Promise((resolve) => setTimeout(resolve, 60));
  const before = house.fake.calls.length;
  for (let i = 0; i < 9; i++) assert.equal((await house.ask()).text, 'well');
  assert.equal(new Set(house.fake.calls.slice(before).map(({ model: id }) => id)).size, 3);
  assert.ok(house.room.states(house.exchange().config).every(({ state, consecutive_failures }) => state === 'closed' && consecutive_failures === 0));
}

test('chaos, commit: complete: with a third of all calls failing, clients see whole answers', async (context) => {
  const { house, first, last } = await chaos(context, 'complete', 4);
  assert.deepEqual(
    last.filter(({ error }) => error).map(({ error }) => error?.message),
    [],
  );
  assert.ok(last.every(({ text }) => text === 'one whole answer'));
  assert.ok(first.filter(({ error }) => error).length <= REQUESTS * 0.01, `${first.filter(({ error }) => error).length} first tries failed`);
  await nothingIsLeftBehind(house);
});

test('chaos, commit: content: what breaks after content is one honest error that a repeat mends', async (context) => {
  const { house, first, last } = await chaos(context, 'content', 5);
  assert.deepEqual(
    last.filter(({ error }) => error).map(({ error }) => error?.message),
    [],
  );
  assert.ok(last.every(({ text }) => text === 'one whole answer'));
  // Nothing is ever spliced: a first try is the whole answer or an error.
  assert.ok(first.every(({ text, error }) => error !== undefined || text === 'one whole answer'));
  assert.ok(first.some(({ error }) => error));
  await nothingIsLeftBehind(house);
});

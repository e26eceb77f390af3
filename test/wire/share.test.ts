import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { HermesError } from '../../src/contracts/errors.ts';
import type { Batch, ChunkStream } from '../../src/contracts/stream.ts';
import { toBatch } from '../../src/wire/batch.ts';
import { share } from '../../src/wire/share.ts';

const tick = (ms = 0): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
/** Gives these texts, each at once or after a wait; then ends, or fails. */
function source(texts: readonly string[], { waits = false, error, end }: { waits?: boolean; error?: HermesError; end?: Promise<void> } = {}) {
  let reads = 0;
  const stream: ChunkStream = {
    read() {
      const text = texts[reads++];
      const give = (): Batch | null => {
        if (text !== undefined) return toBatch(Buffer.from(text), false);
        if (error) throw error;
        return null;
      };
      if (text === undefined && end) return end.then(give);
      return waits || reads % 3 === 0 ? tick().then(give) : give();
    },
    cancel: () => undefined,
  };
  return { stream, reads: () => reads };
}
async function readAll(stream: ChunkStream, pause?: number): Promise<string> {
  let text = '';
  for (let batch = await stream.read(); batch; batch = await stream.read()) {
    text += Buffer.from(batch.bytes ?? []).toString();
    if (pause !== undefined) await tick(pause);
  }
  return text;
}

test('every reader gets all of it from its beginning, however fast each is, and the source is read once', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.string({ minLength: 1, maxLength: 3 }), { maxLength: 8 }),
      fc.array(fc.constantFrom(undefined, 0, 1), { minLength: 1, maxLength: 5 }),
      fc.boolean(),
      async (texts, paces, waits) => {
        const from = source(texts, { waits });
        const shared = share(from.stream);
        const readers = paces.map(async (pace, at) => {
          await tick(at % 2);
          return readAll(shared.open(), pace);
        });
        assert.deepEqual(
          await Promise.all(readers),
          paces.map(() => texts.join('')),
        );
        assert.equal(from.reads(), texts.length + 1);
      },
    ),
    { numRuns: 40 },
  );
});

test('a failure reaches every reader after what came before it', async () => {
  const error = new HermesError('upstream_error', 'cut');
  const shared = share(source(['a', 'b'], { error }).stream);
  for (const stream of [shared.open(), shared.open()]) {
    let text = '';
    await assert.rejects(async () => {
      for (let batch = await stream.read(); batch; batch = await stream.read()) text += String(batch.bytes);
    }, error);
    assert.equal(text, 'ab');
  }
});

test('a reader that leaves hears so at once, also while it waits, and the others go on', async () => {
  let finish = (): void => undefined;
  const end = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const shared = share(source(['a'], { end }).stream);
  const [one, two] = [shared.open(), shared.open()];
  await Promise.all([one.read(), two.read()]);
  const rest = one.read();
  const waiting = two.read();
  const gone = new HermesError('deadline_exceeded', 'late');
  two.cancel(gone);
  await assert.rejects(async () => waiting, gone);
  finish();
  assert.equal(await rest, null);
});

test('nobody learns of the end before what must come first is done, and a failure of that is the end', async () => {
  const order: string[] = [];
  const shared = share(source(['a']).stream, {
    over: async () => {
      await tick(10);
      order.push('stored');
    },
  });
  await Promise.all([shared.open(), shared.open()].map((reader) => readAll(reader).then(() => order.push('told'))));
  assert.deepEqual(order, ['stored', 'told', 'told']);
  const failing = share(source(['a']).stream, { over: () => Promise.reject(new HermesError('internal_error', 'store')) });
  await assert.rejects(readAll(failing.open()), /store/);
});

test('beyond its limit the beginning is let go of: readers go on, nobody else may join', async () => {
  const texts = Array.from({ length: 50 }, (_, at) => `${at} `.padStart(10));
  const shared = share(source(texts).stream, { maxBytes: 100 });
  const [fast, slow] = [shared.open(), shared.open()];
  const read = readAll(slow, 0);
  assert.equal(await readAll(fast), texts.join(''));
  assert.throws(() => shared.open(), /too large/);
  assert.equal(shared.whole, false);
  assert.equal(await read, texts.join(''));
  assert.ok(shared.batches.length < 50);
});
test('what is to come can be read to its end by nobody in particular, also when the beginning is gone', async () => {
  let over = false;
  const { stream } = source(['a', 'bb', 'cc', 'dd', 'ee']);
  const shared = share(stream, {
    maxBytes: 3,
    over: () => {
      over = true;
      return undefined;
    },
  });
  const first = shared.open();
  for (let i = 0; i < 3; i++) await first.read();
  first.cancel();
  assert.throws(() => shared.open(), { code: 'overloaded' });
  assert.equal((await readAll(shared.rest())).slice(-4), 'ddee');
  assert.ok(over);
});

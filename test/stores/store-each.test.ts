import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { storeEach } from '../../src/stores/cold/postgres/store-each.ts';

/** Stores numbers, refuses those below 0, and counts what it is asked. */
function database(): { asked: string[]; held: number[]; ask(text: string): Promise<void>; store(some: readonly number[]): Promise<void> } {
  const made = {
    asked: [] as string[],
    held: [] as number[],
    async ask(text: string) {
      made.asked.push(text);
    },
    async store(some: readonly number[]) {
      made.asked.push(`${some.length} rows`);
      if (some.some((one) => one < 0)) throw new Error('refused');
      made.held.push(...some);
    },
  };
  return made;
}
const numbers = (length: number): number[] => Array.from({ length }, (_, i) => i + 1);

describe('records that are stored together', () => {
  it('take a few round trips, however many they are', async () => {
    const db = database();
    assert.equal(await storeEach(numbers(1000), db.ask, db.store), 0);
    assert.deepEqual(db.held, numbers(1000));
    assert.ok(db.asked.length <= 15, `${db.asked.length} round trips`);
  });
  it('lose only the one that is refused, and slow only its neighbours down', async () => {
    const db = database();
    const records = numbers(1000).map((one) => (one === 500 ? -1 : one));
    assert.equal(await storeEach(records, db.ask, db.store), 1);
    assert.deepEqual(
      db.held,
      numbers(1000).filter((one) => one !== 500),
    );
    assert.ok(db.asked.length < 1000, `${db.asked.length} round trips`);
  });
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { skipWithout, startPostgres } from '../services.ts';
import { killedTurns } from './killed-turns.ts';

// The long form is bench/turns.ts.
const short = { sessions: 24, turns: 12, atOnce: 12, lifeMs: 500 };

describe('a gateway killed with SIGKILL at random moments has every acknowledged turn once, in order, and every session legal', () => {
  test('with the embedded database', async () => {
    const { faults, broken, kills, turns } = await killedTurns({ ...short, kills: 2, seed: 4 });
    assert.deepEqual(faults, []);
    assert.equal(turns, 24 * 12);
    assert.ok(kills > 0 && broken > 0, `nothing was broken off by ${kills} kills`);
  });

  test('with PostgreSQL', skipWithout('postgres'), async () => {
    const postgres = await startPostgres();
    const { faults, broken, kills } = await killedTurns({ ...short, kills: 1, seed: 5, env: { DATABASE_URL: await postgres.createDatabase() } });
    await postgres.stop();
    assert.deepEqual(faults, []);
    assert.ok(kills > 0 && broken > 0, `nothing was broken off by ${kills} kills`);
  });
});

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { ColdStore, TraceRecord } from '../../src/contracts/cold-store.ts';
import createSqljsStore from '../../src/stores/cold/sqljs.ts';
import { describeColdStore } from '../conformance/cold-store.ts';
import { temporaryFolder } from '../services.ts';
import { storeOptions } from './fixture.ts';

async function opened(url: string): Promise<ColdStore> {
  const store = createSqljsStore(storeOptions(url));
  await store.open();
  return store;
}

describeColdStore('sqljs, in memory', () => opened('sqlite::memory:'));
describeColdStore('sqljs, on disk', () => opened(`sqlite:///${join(temporaryFolder(), 'made', 'hermes.db')}`));

describe('traces in the embedded database', () => {
  it('are the newest 20,000: it holds them in memory', async () => {
    const store = await opened('sqlite::memory:');
    const trace = (number: number): TraceRecord => ({
      id: `t${number}`,
      traceId: `${number}`,
      requestId: `r${number}`,
      startedAt: number,
      durationMs: 1,
      status: 200,
      route: 'default',
      model: 'fast',
      service: 'support',
      session: undefined,
      spans: [],
      calls: [],
      facts: {},
    });
    for (let from = 0; from < 20_500; from += 4100) await store.writeTraces(Array.from({ length: 4100 }, (_, index) => trace(from + index)));
    assert.equal(await store.readTrace('t499'), undefined);
    assert.equal((await store.readTrace('t500'))?.requestId, 'r500');
    assert.equal((await store.readTrace('t20499'))?.requestId, 'r20499');
    await store.close();
  });
});

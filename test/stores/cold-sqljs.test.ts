import { join } from 'node:path';
import type { ColdStore } from '../../src/contracts/cold-store.ts';
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

/** Closes while a write is on its way; nothing else keeps the process. `closes-at-once.ts URL`. */
import { writeSync } from 'node:fs';
import createSqljsStore from '../../src/stores/cold/sqljs.ts';
import { storeOptions } from './fixture.ts';

const store = createSqljsStore(storeOptions(process.argv[2] ?? ''));
await store.open();
void store.setValue('last', 'word', undefined);
await store.close();
writeSync(1, 'closed');

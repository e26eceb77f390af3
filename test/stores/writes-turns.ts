/** Writes turns as fast as it can until it is killed; each acknowledged one is a line on stdout. `writes-turns.ts URL SESSIONS`. */
import { writeSync } from 'node:fs';
import createSqljsStore from '../../src/stores/cold/sqljs.ts';
import { storeOptions, turn } from './fixture.ts';

const [url = '', sessions = '1'] = process.argv.slice(2);
const store = createSqljsStore(storeOptions(url));
await store.open();
await Promise.all(
  Array.from({ length: Number(sessions) }, async (_, i) => {
    let version = (await store.readSession('shop', `s${i}`, 1))?.version ?? 0;
    for (;;) {
      version = await store.appendTurn(turn(`s${i}`, version, `s${i} turn ${version + 1}`));
      writeSync(1, `s${i} ${version}\n`);
    }
  }),
);

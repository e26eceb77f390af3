import createMemoryStore from '../../src/stores/hot/memory.ts';
import { describeHotStore } from '../conformance/hot-store.ts';
import { environment, recordLog } from './fixture.ts';

describeHotStore('memory', async () => createMemoryStore({ keyPrefix: 'hermes:', log: recordLog(), environment }));

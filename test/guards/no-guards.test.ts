import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startApp } from '../app-kit.ts';

test('without guards the layer is not there', async () => {
  const app = await startApp({ guards: [] });
  const plugins = (await app.fetch('/admin/plugins')).json.data as { name: string; hooks: string[] }[];
  assert.deepEqual(plugins.find(({ name }) => name === 'guard')?.hooks, []);
  const names = plugins.map(({ name }) => name);
  assert.deepEqual([names.indexOf('guard') - names.indexOf('tools'), names.indexOf('failover') - names.indexOf('guard')], [1, 1]);
  assert.deepEqual([names.indexOf('cache') - names.indexOf('schedule'), names.indexOf('shadow') - names.indexOf('cache')], [1, 1]);
  await app.stop();
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startApp } from '../app-kit.ts';
import { startHttpMcp } from './mcp-fixture.ts';
import { until } from './tools-kit.ts';

test('operators see every tool, those of MCP servers too, and no address of any', async () => {
  const mcp = await startHttpMcp();
  const app = await startApp({
    tools: [
      { id: 'order.query', endpoint: 'http://127.0.0.1:9/orders', side_effects: false },
      { id: 'files', mcp: { url: mcp.url }, timeout_ms: 4000 },
    ],
  });
  type Listed = { id: string; source: string | undefined; timeout_ms: number; allow: object }[];
  const list = async (): Promise<Listed> => (await app.fetch('/admin/tools')).json.data as Listed;
  await until(async () => (await list()).some(({ id }) => id === 'files.read'));
  const rows = await list();
  assert.equal(rows.find(({ id }) => id === 'order.query')?.source, undefined);
  const read = rows.find(({ id }) => id === 'files.read');
  assert.deepEqual([read?.source, read?.timeout_ms, typeof read?.allow], ['files', 4000, 'object']);
  assert.doesNotMatch(JSON.stringify(rows), /127\.0\.0\.1|endpoint|url/);
  await app.stop();
  await mcp.close();
});

import assert from 'node:assert/strict';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { loadPlugins } from '../../src/pipeline/load-plugins.ts';
import { orderPlugins } from '../../src/pipeline/order.ts';
import { temporaryFolder } from '../services.ts';

async function orderWith(files: Record<string, string>): Promise<string[]> {
  const folder = mkdtempSync(join(temporaryFolder(), 'plugins-'));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), `export default { handle: (_exchange, next) => next(), ${text} };`);
  return orderPlugins(await loadPlugins(folder)).map(({ plugin }) => plugin.name);
}

describe('a plugin that takes the place of one of hermes', () => {
  it('stands where that one stood; where it wants to stand elsewhere, it alone moves', async () => {
    const own = await orderWith({});
    for (const name of own) {
      assert.deepEqual(await orderWith({ 'x.mjs': `name: '${name}'` }), own, name);
      const others = own.filter((other) => other !== name);
      for (const after of others) {
        const order = await orderWith({ 'x.mjs': `name: '${name}', after: '${after}'` });
        assert.deepEqual(
          order.filter((other) => other !== name),
          others,
          `${name} after ${after}`,
        );
        assert.equal(order.indexOf(name), order.indexOf(after) + 1);
      }
    }
  });

  it('may stand beside those of the user', async () => {
    const order = await orderWith({ 'a.mjs': "name: 'mine', after: 'route'", 'b.mjs': "name: 'limits', after: 'mine'" });
    assert.deepEqual(order.slice(order.indexOf('route'), order.indexOf('route') + 3), ['route', 'mine', 'limits']);
  });
});

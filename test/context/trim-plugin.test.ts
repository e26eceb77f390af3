import assert from 'node:assert/strict';
import { test } from 'node:test';
import trimPlugin from '../../plugins/trim.ts';
import type { Answer } from '../../src/contracts/exchange.ts';
import { configOf, exchangeOf, target } from './context-kit.ts';

test('without a session messages are fitted where tools of hermes may have put results into them, from whichever source', async () => {
  const tool = { id: 'look', endpoint: 'http://127.0.0.1:9/look', side_effects: false };
  for (const [file, expected] of [
    [{}, 0],
    [{ tools: [tool] }, 1],
    [{ tools: [{ id: 'docs', mcp: { url: 'http://127.0.0.1:9/mcp' } }] }, 1],
  ] as const) {
    let fits = 0;
    const context = {
      fit: async ({ request }: { request: unknown }) => {
        fits++;
        return { request };
      },
    };
    const hooks = await trimPlugin.setup?.({ rooms: { context } } as never, undefined);
    const exchange = exchangeOf(configOf({}, file), { messages: [{ role: 'user', content: 'hi' }] }, false);
    exchange.attempt = { number: 1, model: 'fast_model', upstream: target() };
    await hooks?.handle?.(exchange, async () => ({ facts: {} }) as Answer, undefined as never);
    assert.equal(fits, expected, JSON.stringify(file));
  }
});

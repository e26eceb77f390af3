import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PipelineExchange } from '../../src/pipeline/exchange.ts';
import { house, model, refuses, says, target } from '../upstream/failover-kit.ts';

test('a shadow asks its model once, and nobody in its place: repeats would open the breakers of live traffic', async () => {
  const models = [model('rival', [target('r'), target('r2')], { fallback_target: 'spare' }), model('spare', [target('s')])];
  const { exchange, run, tries } = house(models, { r: refuses('overloaded', 500), r2: says('well'), s: says('spare') });
  const live = exchange({ model: 'rival' });
  const fork = live.fork({ detached: true, background: true });
  const answer = await run(fork as PipelineExchange);
  assert.equal(tries.length, 1);
  assert.equal(answer.error !== undefined, true);
  const again = await run(exchange({ model: 'rival' }));
  assert.equal(again.error, undefined, 'live requests are tried elsewhere as ever');
});

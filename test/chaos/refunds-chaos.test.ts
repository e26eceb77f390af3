import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chaos } from './refunds.ts';

// The long form is bench/chaos.ts.
const short = { requests: 120, atOnce: 12 };

for (const [commit, seed] of [
  ['complete', 11],
  ['content', 12],
] as const) {
  test(`chaos, commit: ${commit}: a third of all model calls fail, clients retry, and every refund is paid exactly once`, async () => {
    const { refunds, failed, violations, left } = await chaos({ ...short, commit, seed });
    assert.deepEqual(failed, []);
    assert.equal(refunds.size, short.requests / 2);
    assert.deepEqual(
      [...refunds].filter(([, times]) => times !== 1),
      [],
    );
    assert.deepEqual(violations, []);
    assert.deepEqual(left, { calls: 0, requests: 0 });
  });
}

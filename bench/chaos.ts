/**
 * The long form of test/chaos/refunds-chaos.test.ts: `npx tsx --expose-gc bench/chaos.ts [REQUESTS]`. By default 5,000 requests each with
 * `commit: content` and `commit: complete`, half of them refunds. Ends with 1 when a refund was not paid exactly once.
 */
import { chaos } from '../test/chaos/refunds.ts';

const requests = Number(process.argv[2] ?? 5000);
for (const commit of ['content', 'complete'] as const) {
  const began = performance.now();
  const { refunds, failed, calls, violations, left, heapMb } = await chaos({ commit, requests, atOnce: 32, seed: Date.now() });
  const once = [...refunds.values()].filter((times) => times === 1).length;
  const seconds = Math.round((performance.now() - began) / 1000);
  const told = {
    commit,
    requests,
    model_calls: calls,
    failed_for_good: failed.length,
    refunds: requests / 2,
    paid_once: once,
    paid_again: refunds.size - once,
    left,
    violations: violations.length,
  };
  process.stdout.write(`${JSON.stringify({ ...told, heap_mb: heapMb, seconds })}\n`);
  if (once !== requests / 2 || refunds.size !== once) process.exitCode = 1;
}

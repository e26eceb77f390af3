import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toShownMessage } from '../../src/upstream/refusal.ts';

test("an upstream's words are shown without addresses, machines, keys and stacks", () => {
  const shown: Record<string, string> = {
    'no room on http://10.0.0.7:8000/v1 (10.0.0.7:8000, localhost:1)': 'no room on [address] ([address], [address])',
    'gpu-7.pool.svc.cluster.local:8000 refused, ask vllm.internal or node3.lan': '[address] refused, ask [address] or [address]',
    'Incorrect API key sk-abcdef123456': 'Incorrect API [key]',
    'it broke\n    at Object.run (/srv/app/index.js:10:5)\n    at next (x.js:1:1)': 'it broke',
    'it broke\nTraceback (most recent call last):\n  File "/app/main.py", line 3, in run': 'it broke',
    'it broke\n  File "/app/main.py", line 3': 'it broke',
    'it broke\n\tat com.acme.Main.run(Main.java:7)': 'it broke',
    'gpt-4.1:30 and o3.5 are fine, see platform.openai.com/docs; at most 10:30': 'gpt-4.1:30 and o3.5 are fine, see platform.openai.com/docs; at most 10:30',
    '请求\n过长': '请求 过长',
  };
  for (const [message, words] of Object.entries(shown)) assert.equal(toShownMessage(message), words);
  assert.equal(toShownMessage('x'.repeat(1000)).length, 601);
});

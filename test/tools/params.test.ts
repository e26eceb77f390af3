import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ParamsCheck } from '../../src/tools/params.ts';
import type { RegisteredTool } from '../../src/tools/registered-tool.ts';

test('a schema with an id of its own is checked again after a reload or a reconnect brought it anew, in whatever version', () => {
  const check = new ParamsCheck();
  for (const type of ['string', 'string', 'number']) {
    const parameters = { $id: 'https://example.com/order.json', type: 'object', properties: { id: { type } }, required: ['id'] };
    const tool: Pick<RegisteredTool, 'parameters'> = { parameters };
    const problems = ['{"id":"7"}', '{"id":7}'].map((text) => check.check(tool as RegisteredTool, text).problem !== undefined);
    assert.deepEqual(problems, [type !== 'string', type === 'string']);
  }
});

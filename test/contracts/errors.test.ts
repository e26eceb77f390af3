import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { ERRORS, HermesError, isAbort, toErrorBody, toHermesError } from '../../src/contracts/errors.ts';

describe('errors', () => {
  it('are all in docs/errors.md, with their status, type and whether to retry', () => {
    const page = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8');
    const rows = [...page.matchAll(/^\| `(\w+)` \| (\d+) \| `(\w+)` \| (yes|no) \| \S.* \|$/gm)].map(([, code, status, type, retry]) => [
      code,
      Number(status),
      type,
      retry === 'yes',
    ]);
    assert.deepEqual(
      rows,
      Object.entries(ERRORS).map(([code, { status, type, retryable }]) => [code, status, type, retryable]),
    );
  });

  it("have OpenAI's four members, an upstream's own words in their place", () => {
    assert.deepEqual(toErrorBody(new HermesError('invalid_request', 'no messages', { param: 'messages' })), {
      error: { message: 'no messages', type: 'invalid_request_error', param: 'messages', code: 'invalid_request' },
    });
    const handedOn = new HermesError('upstream_refused', 'no', { status: 422, type: 'invalid_request_error', wireCode: null, details: { tried: ['a'] } });
    assert.deepEqual(toErrorBody(handedOn), { error: { message: 'no', type: 'invalid_request_error', param: null, code: null }, tried: ['a'] });
    assert.equal(handedOn.status, 422);
  });

  it('keep what was thrown as their cause, and its words to themselves', () => {
    const cause = new Error('connect ECONNREFUSED 10.0.0.7:443');
    const error = toHermesError(cause);
    assert.equal(error.code, 'internal_error');
    assert.equal(error.cause, cause);
    assert.doesNotMatch(error.message, /10\.0\.0\.7/);
    assert.equal(toHermesError(error), error);
  });

  it('tell a broken off answer from a failed one', () => {
    assert.ok(isAbort(new HermesError('client_closed', '')));
    assert.ok(!isAbort(new HermesError('deadline_exceeded', '')));
  });
});

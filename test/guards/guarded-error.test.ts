import assert from 'node:assert/strict';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { HermesError } from '../../src/contracts/errors.ts';
import { type RunningApp, startApp, user } from '../app-kit.ts';

describe('an error in other words', () => {
  it('is the same error in all that was not given', () => {
    const error = new HermesError('context_length_exceeded', 'too long', {
      status: 413,
      param: 'messages',
      headers: { 'retry-after': '1' },
      exceeded: { tokens: 9, maximum: 8 },
      said: { error_code: 'a' },
      details: { guard: 'g' },
      cause: new Error('why'),
    });
    const reworded = error.reworded('longer', { said: { error_code: 'b' } });
    assert.deepEqual({ ...reworded, stack: '' }, { ...error, said: { error_code: 'b' }, stack: '' });
    assert.deepEqual([reworded.message, reworded.cause], ['longer', error.cause]);
  });
});

describe('what an upstream says of a refusal', () => {
  let upstream: http.Server;
  let app: RunningApp;
  before(async () => {
    upstream = http.createServer((request, response) => {
      request.resume();
      const details = { error_code: 'no_such_account', account: 'jane.doe@example.com' };
      const error = { type: 'invalid_request_error', message: 'prompt is too long: 9001 tokens > 8192 maximum, ask jane.doe@example.com', details };
      response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ type: 'error', error }));
    });
    await new Promise<void>((done) => upstream.listen(0, '127.0.0.1', done));
    const api_base = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
    app = await startApp(
      {
        models: [{ id: 'claude', provider: 'anthropic', model_name: 'claude-sonnet-4-5', api_base, api_key_env: 'ANT_KEY' }],
        guards: [{ id: 'people', kind: 'pii', action: 'redact' }],
      },
      { env: { ANT_KEY: 'sk-ant' } },
    );
  });
  after(async () => {
    await app.stop();
    upstream.close();
  });

  it('is redacted in its details, too, and keeps the words that clients look for', async () => {
    const { text, json } = await app.post('/v1/messages', { model: 'claude', max_tokens: 10, messages: user('hi') });
    assert.doesNotMatch(text, /jane/);
    const error = (json as { error?: { message?: string; details?: Record<string, string> } }).error;
    assert.match(error?.message ?? '', /^prompt is too long: 9001 tokens > 8192 maximum, ask ⟦email_\d⟧/);
    assert.match(JSON.stringify(error?.details), /"error_code":"no_such_account","account":"⟦email_\d⟧"/);
  });
});

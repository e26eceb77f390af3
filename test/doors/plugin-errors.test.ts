import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type RunningApp, startApp, user } from '../app-kit.ts';

const REFUSES = `export default {
  name: 'opening-hours',
  handle(exchange) {
    exchange.answer = { status: 403, headers: { 'x-closed': '1' }, body: { error: { message: 'The shop is closed.', type: 'permission_error', code: 'closed', more: 7 } } };
  },
};`;

describe('an error that a plugin answers', () => {
  let app: RunningApp;
  before(async () => {
    app = await startApp({}, { files: { 'opening-hours.mjs': REFUSES } });
  });
  after(() => app.stop());

  for (const stream of [false, true])
    it(`has the form of the client's door (stream: ${stream})`, async () => {
      const anthropic = await app.post('/v1/messages', { model: 'auto', max_tokens: 10, messages: user('hi'), stream });
      const { request_id, ...body } = anthropic.json as Record<string, unknown>;
      assert.deepEqual(body, { type: 'error', error: { type: 'permission_error', message: 'The shop is closed.' } });
      assert.equal(typeof request_id, 'string');
      const responses = await app.post('/v1/responses', { model: 'auto', input: 'hi', stream });
      assert.deepEqual(responses.json.error, { message: 'The shop is closed.', type: 'permission_error', param: null, code: 'closed' });
      const chat = await app.chat({ messages: user('hi'), stream });
      assert.deepEqual(chat.json.error, { message: 'The shop is closed.', type: 'permission_error', code: 'closed', more: 7 });
      for (const { status, headers } of [anthropic, responses, chat]) assert.deepEqual([status, headers.get('x-closed')], [403, '1']);
    });
});

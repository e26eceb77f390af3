import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { deliver, toMessage } from '../../src/accounting/budget-notice.ts';
import { postWebhook } from '../../src/upstream/post-webhook.ts';
import { makeConfig } from '../config/make-config.ts';
import { recordLog } from '../stores/fixture.ts';

const notice = { event: 'budget_crossed' as const, budget: 'b', service: 'support', day: '2026-11-30', usd: 50.5, limit_usd: 50, switch_to: 'mid_model' };

describe('the message of a crossed budget', () => {
  it('has the form that its service takes', () => {
    const text =
      'hermes: the budget b of support is used up on 2026-11-30: 50.50 of 50.00 USD. For the rest of the day dearer models are replaced by mid_model.';
    assert.deepEqual(toMessage(notice, 'json'), notice);
    assert.deepEqual(toMessage(notice, 'feishu'), { msg_type: 'text', content: { text } });
    assert.deepEqual(toMessage(notice, 'dingtalk'), { msgtype: 'text', text: { content: text } });
    assert.deepEqual(toMessage(notice, 'slack'), { text });
  });
});

describe('a webhook', () => {
  const answers: [number, string][] = [];
  const heard: unknown[] = [];
  let server: Server;
  let url = '';
  before(async () => {
    server = createServer((request, response) => {
      let body = '';
      request.on('data', (part) => {
        body += part;
      });
      request.on('end', () => {
        heard.push(JSON.parse(body));
        const [status, text] = answers.shift() ?? [200, 'ok'];
        response.writeHead(status).end(text);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks/s3cret`;
  });
  after(() => server.close());
  const send = async (format: 'json' | 'feishu' | 'dingtalk' | 'slack', given: [number, string][], env: Record<string, string> = { HOOK: url }) => {
    answers.splice(0, answers.length, ...given);
    heard.splice(0);
    const config = makeConfig(
      { cost: { budgets: [{ id: 'b', service: 'support', usd_per_day: 1, switch_to: 'fast_model', notify: { url_env: 'HOOK', format } }] } },
      env,
    );
    const log = recordLog();
    const { signal } = new AbortController();
    const taken = await deliver(notice, { url_env: 'HOOK', format }, config, { post: postWebhook, log, signal, firstPauseMs: 1 });
    return { taken, log: JSON.stringify(log.lines) };
  };

  it('is tried again until it takes the message', async () => {
    const { taken, log } = await send('json', [
      [500, ''],
      [302, ''],
      [204, ''],
    ]);
    assert.equal(taken, true);
    assert.deepEqual(heard, [notice, notice, notice]);
    assert.ok(log.includes('status 500') && !log.includes('s3cret'), 'its address is a secret');
  });
  it('that says 200 and means no is tried again, too', async () => {
    assert.equal(
      (
        await send('feishu', [
          [200, '{"code":19001,"msg":"param invalid"}'],
          [200, '{"code":0}'],
        ])
      ).taken,
      true,
    );
    assert.equal(heard.length, 2);
    assert.equal(
      (
        await send('dingtalk', [
          [200, '{"errcode":310000}'],
          [200, '{"errcode":0}'],
        ])
      ).taken,
      true,
    );
    assert.equal(heard.length, 2);
    assert.equal((await send('slack', [[200, 'ok']])).taken, true);
    assert.equal(heard.length, 1);
  });
  it('without an address, or that never answers well, is given up, and the log says so without the address', async () => {
    const none = await send('json', [], {});
    assert.equal(none.taken, false);
    assert.match(none.log, /HOOK is not set/);
    const away = await send('json', [], { HOOK: 'http://127.0.0.1:9/s3cret' });
    assert.equal(away.taken, false);
    assert.ok(away.log.includes('ECONNREFUSED') && !away.log.includes('s3cret'));
  });
  it('is not waited for when the process ends', async () => {
    const stop = new AbortController();
    const config = makeConfig({}, {});
    const secrets = new Map([['HOOK', 'http://127.0.0.1:9/']]);
    const used = Object.defineProperty({ ...config }, 'secrets', { value: secrets });
    const sending = deliver(notice, { url_env: 'HOOK', format: 'json' }, used as typeof config, {
      post: postWebhook,
      log: recordLog(),
      signal: stop.signal,
      firstPauseMs: 60_000,
    });
    setTimeout(() => stop.abort(), 30);
    assert.equal(await sending, false);
  });
});

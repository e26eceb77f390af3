import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { deliver, type PostJson, toMessage } from '../../src/accounting/budget-notice.ts';
import { postWebhook } from '../../src/upstream/post-webhook.ts';
import { makeConfig } from '../config/make-config.ts';
import { recordLog } from '../stores/fixture.ts';

const notice = {
  event: 'budget_crossed' as const,
  budget: 'b',
  service: 'support',
  day: '2026-11-30',
  usd: 50.5,
  limit_usd: 50,
  switch_to: 'mid_model',
  period: 'day' as const,
};

describe('the message of a crossed budget', () => {
  it('has the form that its service takes', () => {
    const text =
      'hermes: the budget b of support is used up on 2026-11-30: 50.50 of 50.00 USD. For the rest of the day dearer models are replaced by mid_model.';
    assert.deepEqual(toMessage(notice, 'json'), notice);
    assert.deepEqual(toMessage(notice, 'feishu'), { msg_type: 'text', content: { text } });
    assert.deepEqual(toMessage(notice, 'dingtalk'), { msgtype: 'text', text: { content: text } });
    assert.deepEqual(toMessage(notice, 'slack'), { text });
    assert.match(JSON.stringify(toMessage({ ...notice, usd: 0.0105, limit_usd: 0.001 }, 'slack')), /: 0\.01 of 0\.001 USD/);
    const refusing = { ...notice, service: null, project: 'shop', switch_to: null, action: 'refuse' as const, period: 'month' as const };
    assert.deepEqual(toMessage(refusing, 'slack'), {
      text: 'hermes: the budget b of shop is used up in 2026-11: 50.50 of 50.00 USD. For the rest of the month requests are refused.',
    });
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

describe('the signature of a webhook', () => {
  // The pauses between tries do not keep a process alive: something here must.
  let alive: NodeJS.Timeout;
  before(() => {
    alive = setInterval(() => undefined, 1000);
  });
  after(() => clearInterval(alive));
  const toBudget = (notify: object) =>
    makeConfig(
      { cost: { budgets: [{ id: 'b', service: 'support', usd_per_day: 1, switch_to: 'fast_model', notify }] } },
      { HOOK: 'http://hook.invalid/', HOOK_SECRET: 'whsec' },
    );
  const tries = async (notify: { url_env: string; format: 'slack'; secret_env?: string }) => {
    const heard: { headers: Record<string, string>; body: string }[] = [];
    const post: PostJson = async (_url, { headers, body }) => {
      heard.push({ headers, body });
      if (heard.length === 1) throw new Error('status 500');
    };
    let at = 1_796_040_000_000;
    const now = (): number => {
      at += 1000;
      return at;
    };
    const { signal } = new AbortController();
    assert.equal(await deliver(notice, notify, toBudget(notify), { post, log: recordLog(), signal, now, firstPauseMs: 1 }), true);
    return heard;
  };
  it('is made anew for each try, over its time and the very body', async () => {
    const heard = await tries({ url_env: 'HOOK', format: 'slack', secret_env: 'HOOK_SECRET' });
    assert.deepEqual(
      heard.map(({ headers }) => headers['x-hermes-timestamp']),
      ['1796040001', '1796040002'],
    );
    for (const { headers, body } of heard) {
      const expected = createHmac('sha256', 'whsec').update(`${headers['x-hermes-timestamp']}.${body}`).digest('hex');
      assert.equal(headers['x-hermes-signature'], `v1=${expected}`);
    }
  });
  it('is left out without a secret', async () => {
    const [first] = await tries({ url_env: 'HOOK', format: 'slack' });
    assert.deepEqual(first?.headers, { 'content-type': 'application/json' });
  });
});

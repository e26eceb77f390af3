import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { type RunningApp, startApp, user } from '../app-kit.ts';
import { until } from '../services.ts';

const KB = { authorization: 'Bearer sk-kb-0123456789abcdefghij' };

const TRIAL = 'sk-trial-0123456789abcdefghij';

describe('a budget in the running product', () => {
  const messages: unknown[] = [];
  let hook: Server;
  let app: RunningApp;
  before(async () => {
    hook = createServer((request, response) => {
      request.on('data', (part) => messages.push(JSON.parse(String(part))));
      request.on('end', () => response.end('ok'));
    });
    await new Promise<void>((resolve) => hook.listen(0, '127.0.0.1', resolve));
    app = await startApp(
      {
        models: [
          { id: 'smart_model', provider: 'simulator', pricing: { input_per_million: 1000, output_per_million: 1000 } },
          { id: 'mid_model', provider: 'simulator', pricing: { input_per_million: 1, output_per_million: 1 } },
        ],
        auth: {
          keys: [
            { id: 'kb', key_env: 'KB_KEY', service: 'kb' },
            { id: 'trial', key_env: 'TRIAL_KEY', service: 'trial' },
          ],
        },
        cost: {
          budgets: [
            { id: 'daily', service: 'default', usd_per_day: 0.001, switch_to: 'mid_model', notify: { url_env: 'HOOK', format: 'slack' } },
            { id: 'trial-user', user: 'visitor*', usd_per_month: 0.001, action: 'refuse' },
          ],
        },
      },
      { env: { KB_KEY: 'sk-kb-0123456789abcdefghij', TRIAL_KEY: TRIAL, HOOK: `http://127.0.0.1:${(hook.address() as AddressInfo).port}/` } },
    );
  });
  after(async () => {
    await app.stop();
    hook.close();
  });
  const servedBy = async (headers: Record<string, string> = {}): Promise<string | null> =>
    (await app.chat({ model: 'smart_model', messages: user('hello') }, headers)).headers.get('x-hermes-model');

  it('switches the next request after the crossing, for this service alone, and tells the webhook once', async () => {
    assert.equal(await servedBy(), 'smart_model');
    assert.deepEqual([await servedBy(), await servedBy(), await servedBy(KB)], ['mid_model', 'mid_model', 'smart_model']);
    await until(() => messages.length > 0, 'the webhook was not told');
    assert.match((messages[0] as { text: string }).text, /the budget daily of default is used up/);
    assert.equal(messages.length, 1);
    const { json } = await app.fetch('/admin/budgets');
    const [view] = json.data as { id: string; state: string; spent_usd: number }[];
    assert.deepEqual([view?.id, view?.state], ['daily', 'crossed']);
    assert.ok((view?.spent_usd ?? 0) > 0.001);
  });
  it('shows in a dry run', async () => {
    const { json } = await app.post('/debug/route', { model: 'smart_model', messages: user('hello') });
    assert.deepEqual([json.model_before_cost, json.model, json.cost_rule], ['smart_model', 'mid_model', 'daily']);
  });
  it('is lifted at once by an admin, and by nobody else', async () => {
    assert.equal((await app.post('/admin/budgets/daily/lift', {}, KB)).status, 403);
    assert.equal((await app.post('/admin/budgets/none/lift', {})).status, 404);
    const { status, json } = await app.post('/admin/budgets/daily/lift', {});
    assert.deepEqual([status, json.done, (json.budget as { state: string }).state], [200, 'lift', 'lifted']);
    assert.deepEqual([await servedBy(), await servedBy()], ['smart_model', 'smart_model']);
    assert.equal(messages.length, 1);
  });
  it('that refuses answers 429 and tells SDKs not to try again, until it is lifted', async () => {
    const headers = { authorization: `Bearer ${TRIAL}` };
    const ask = (name: string) => app.chat({ model: 'smart_model', messages: user('hello'), user: name }, headers);
    assert.equal((await ask('visitor-1')).status, 200);
    const refused = await ask('visitor-1');
    assert.deepEqual([refused.status, refused.headers.get('x-should-retry')], [429, 'false']);
    const { error } = refused.json as { error: { code: string; message: string } };
    assert.equal(error.code, 'budget_exceeded');
    assert.match(error.message, /trial-user/);
    assert.equal((await ask('member-1')).status, 200, 'nobody else is concerned');
    assert.equal((await app.post('/admin/budgets/trial-user/lift', {})).status, 200);
    assert.equal((await ask('visitor-1')).status, 200);
  });
});
